#include "common/config/configure_codec.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_set.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/config/text_form.h"
#include "common/config/worker_cpus.h"
#include "proto/tandem/v1/worker.pb.h"

namespace tandem::config {
namespace {

absl::Status ReadSettings(const v1::Configure& message, WorkerConfig& config) {
  std::map<std::string, const std::string*> settings;
  for (const v1::Setting& setting : message.settings()) {
    if (!settings.emplace(setting.name(), &setting.value()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("setting ", Quoted(setting.name()), " is given twice"));
    }
  }
  FieldList fields;
  config.ForEach(fields);
  for (Field& field : fields.All()) {
    const auto found = settings.find(std::string(field.name()));
    if (found == settings.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("setting '", Sv(field.name()), "' is missing"));
    }
    TANDEM_RETURN_IF_ERROR(field.Set(*found->second));
    settings.erase(found);
  }
  if (settings.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("setting ", Quoted(settings.begin()->first), " is unknown"));
}

}  // namespace

void ToProto(const WorkerConfig& config, const WorkerAssignment& assignment, v1::Configure& out) {
  out.set_epoch(assignment.epoch.value);
  out.set_rank(assignment.rank);
  out.set_size(assignment.size);
  out.set_model_fingerprint(assignment.model_fingerprint);
  out.set_draft_model_fingerprint(assignment.draft_fingerprint);
  out.set_adapters_fingerprint(assignment.adapters_fingerprint);
  out.set_device_index(assignment.device_index);
  out.set_ranks_on_host(assignment.ranks_on_host);
  out.set_kv_cache_bytes(assignment.kv_cache_bytes);
  out.set_cpus(CpuSetText(assignment.cpus));
  out.set_step_channel_address(assignment.step_channel_address);
  WorkerConfig copy = config;
  FieldList fields;
  copy.ForEach(fields);
  for (const Field& field : fields.All()) {
    v1::Setting& setting = *out.add_settings();
    setting.set_name(std::string(field.name()));
    setting.set_value(field.Text());
  }
}

absl::Status FromProto(const v1::Configure& message, WorkerConfig& config,
                       WorkerAssignment& assignment) {
  assignment = {.epoch = Epoch{message.epoch()},
                .rank = message.rank(),
                .size = message.size(),
                .model_fingerprint = message.model_fingerprint(),
                .draft_fingerprint = message.draft_model_fingerprint(),
                .adapters_fingerprint = message.adapters_fingerprint(),
                .device_index = message.device_index(),
                .ranks_on_host = message.ranks_on_host(),
                .kv_cache_bytes = message.kv_cache_bytes(),
                .step_channel_address = message.step_channel_address()};
  if (message.size() < 1 || message.rank() < 0 || message.rank() >= message.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", message.rank(), " of ", message.size(), " ranks"));
  }
  if (message.device_index() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("device index ", message.device_index()));
  }
  if (message.ranks_on_host() < 1 || message.ranks_on_host() > message.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(message.ranks_on_host(), " of ", message.size(), " ranks on this host"));
  }
  if (!message.cpus().empty()) {
    TANDEM_ASSIGN_OR_RETURN(assignment.cpus, ReadCpuSet(message.cpus()));
  }
  config = {};
  return ReadSettings(message, config);
}

}  // namespace tandem::config
