#include "coordinator/simulation/server_profile.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/cli/config_file.h"

namespace tandem::coordinator {
namespace {

constexpr double kMostTokens = 2147483647;
constexpr uint64_t kMostBlocks = 1 << 24;  // that a simulation keeps count of
constexpr double kMostTime = 1e12;         // us or ns

void VisitLimits(SchedulerConfig& scheduler, config::FieldList& visit) {
  visit(scheduler.max_num_seqs, {.flag = "max-num-seqs", .least = 1, .most = 4096});
  visit(scheduler.max_num_batched_tokens,
        {.flag = "max-num-batched-tokens", .least = 1, .most = 1 << 20});
  visit(scheduler.max_model_len, {.flag = "max-model-len", .least = 1, .most = kMostTokens});
  visit(scheduler.max_queue_skips, {.flag = "max-queue-skips", .least = 0, .most = 1 << 20});
  visit(scheduler.policy, {.flag = "scheduling-policy"});
}

void VisitQueue(EngineConfig& engine, config::FieldList& visit) {
  visit(engine.max_queued_requests, {.flag = "max-queued-requests", .least = 1, .most = 1 << 20});
  visit(engine.max_queued_tokens, {.flag = "max-queued-tokens", .least = 1, .most = kMostTokens});
  visit(engine.priority_ageing, {.flag = "priority-ageing", .least = 0.001, .most = 3600});
  visit(engine.step_timeout, {.flag = "step-timeout", .least = 0.001, .most = 1e6});
  visit(engine.pipeline_depth,
        {.flag = "pipeline-depth", .least = 1, .most = step::kPipelineDepth});
  visit(engine.max_result_bytes, {.flag = "max-result-bytes", .least = 1, .most = 1e15});
  visit(engine.vocab_size, {.flag = "vocab-size", .least = 1, .most = 1 << 24});
}

void VisitSteps(StepMeasurements& steps, config::FieldList& visit) {
  visit(steps.prefill.sizes, {.flag = "prefill-tokens", .least = 1, .most = kMostTokens});
  visit(steps.prefill.us, {.flag = "prefill-us", .least = 0, .most = kMostTime});
  visit(steps.prefill_position_ns, {.flag = "prefill-position-ns", .least = 0, .most = kMostTime});
  visit(steps.decode.sizes, {.flag = "decode-sequences", .least = 1, .most = kMostTokens});
  visit(steps.decode.us, {.flag = "decode-us", .least = 0, .most = kMostTime});
  visit(steps.decode_positions, {.flag = "decode-positions", .least = 0, .most = kMostTokens});
  visit(steps.decode_position_ns, {.flag = "decode-position-ns", .least = 0, .most = kMostTime});
}

std::vector<std::string> Names(const std::vector<config::Field>& fields) {
  std::vector<std::string> names;
  for (const config::Field& field : fields) names.emplace_back(field.flag());
  return names;
}

// Lists are replaced, and may be empty.
absl::Status SetField(config::Field& field, std::string_view text) {
  if (field.is_list()) field.Clear();
  if (field.is_list() && text.empty()) return absl::OkStatus();
  return field.Set(text);
}

std::vector<config::Field> FieldsOf(ServerProfile& profile) {
  config::FieldList list;
  profile.ForEach(list);
  return list.All();
}

absl::Status Fill(const cli::ConfigFile& file, ServerProfile& profile) {
  std::vector<config::Field> fields = FieldsOf(profile);
  for (const cli::ConfigFile::Entry& entry : file.entries()) {
    const bool known = std::ranges::any_of(
        fields, [&](const config::Field& field) { return field.flag() == entry.name; });
    if (!known || !entry.section.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(config::Quoted(entry.name), " is no setting of a profile"));
    }
  }
  for (config::Field& field : fields) {
    const cli::ConfigFile::Entry* const entry = file.Find("", field.flag());
    if (entry == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("there is no '", Sv(field.flag()), "'"));
    }
    TANDEM_RETURN_IF_ERROR(SetField(field, absl::StrJoin(entry->values, ",")));
  }
  return profile.Engine().status();
}

}  // namespace

void ServerProfile::ForEach(config::FieldList& visit) {
  visit.BeginSection("The server that was measured");
  visit(format, {.flag = "format", .least = 1, .most = 1});
  visit(model, {.flag = "model"});
  visit(device, {.flag = "device"});
  visit(tensor_parallel_size, {.flag = "tensor-parallel-size", .least = 1, .most = 4096});
  visit(threads_per_worker, {.flag = "threads-per-worker", .least = 0, .most = 4096});
  visit(special_ids, {.flag = "special-ids", .least = 0, .most = 1 << 24});
  visit.BeginSection("Its scheduler");
  VisitLimits(engine.scheduler, visit);
  VisitQueue(engine, visit);
  visit(chunked_prefill_size, {.flag = "chunked-prefill-size", .least = 0, .most = kMostTokens});
  visit(target_itl_ms, {.flag = "target-itl-ms", .least = 0, .most = 60000});
  visit(request_timeout, {.flag = "request-timeout", .least = 0, .most = 86400});
  visit(overlap_below, {.flag = "overlap-below", .least = 0, .most = 86400});
  visit.BeginSection("Its KV cache, by KV group");
  visit(engine.kv_cache.block_size, {.flag = "block-size", .least = 1, .most = 4096});
  visit(engine.kv_cache.enable_prefix_cache, {.flag = "enable-prefix-caching"});
  visit(kv_blocks, {.flag = "kv-blocks", .least = 1, .most = kMostBlocks});
  visit(kv_windows, {.flag = "kv-windows", .least = 0, .most = kMostTokens});
  visit(kv_chunked, {.flag = "kv-chunked", .least = 0, .most = 1});
  visit(num_snapshots, {.flag = "num-snapshots", .least = 0, .most = kMostBlocks});
  visit(snapshot_interval, {.flag = "snapshot-interval", .least = 0, .most = kMostTokens});
  visit.BeginSection("Its steps");
  VisitSteps(steps, visit);
}

ServerProfile ServerProfile::Of(const EngineConfig& engine, StepMeasurements measured) {
  ServerProfile profile{.engine = engine, .steps = std::move(measured)};
  profile.engine.kv_cache.groups.clear();
  profile.engine.kv_cache.snapshots.reset();
  for (const KvGroup& group : engine.kv_cache.groups) {
    profile.kv_blocks.push_back(group.num_blocks);
    profile.kv_windows.push_back(group.window_tokens);
    profile.kv_chunked.push_back(group.chunked ? 1 : 0);
  }
  if (const auto& snapshots = engine.kv_cache.snapshots; snapshots.has_value()) {
    profile.num_snapshots = snapshots->num_snapshots;
    profile.snapshot_interval = snapshots->interval;
  }
  const SchedulerConfig& scheduler = engine.scheduler;
  if (scheduler.chunked_prefill_size != scheduler.max_num_batched_tokens) {
    profile.chunked_prefill_size = scheduler.chunked_prefill_size;
  }
  profile.target_itl_ms = static_cast<uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(scheduler.target_itl).count());
  if (engine.overlap_below != Duration::max()) profile.overlap_below = engine.overlap_below;
  return profile;
}

absl::StatusOr<EngineConfig> ServerProfile::Engine() const {
  TANDEM_RETURN_IF_ERROR(steps.Validate());
  if (kv_windows.size() != kv_blocks.size() || kv_chunked.size() != kv_blocks.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kv-blocks, kv-windows and kv-chunked need one value for each KV group, have ",
                     kv_blocks.size(), ", ", kv_windows.size(), " and ", kv_chunked.size()));
  }
  const uint64_t num_blocks = std::accumulate(kv_blocks.begin(), kv_blocks.end(), uint64_t{0});
  if (num_blocks > kMostBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("kv-blocks: a simulation keeps count of at most ", kMostBlocks,
                     " blocks, found ", num_blocks));
  }
  EngineConfig config = engine;
  for (size_t group = 0; group < kv_blocks.size(); ++group) {
    config.kv_cache.groups.push_back({.num_blocks = kv_blocks[group],
                                      .window_tokens = kv_windows[group],
                                      .chunked = kv_chunked[group] != 0});
  }
  if (snapshot_interval > 0) {
    config.kv_cache.snapshots = {.num_snapshots = num_snapshots, .interval = snapshot_interval};
  }
  SchedulerConfig& scheduler = config.scheduler;
  scheduler.chunked_prefill_size =
      chunked_prefill_size > 0 ? chunked_prefill_size : scheduler.max_num_batched_tokens;
  scheduler.target_itl = std::chrono::milliseconds(target_itl_ms);
  config.overlap_below = overlap_below.value_or(Duration::max());
  config.kv_cache.prefix_hash_key = 1;  // equal simulations are equal
  // Guesses are not simulated, and no request wants an embedding.
  config.max_draft_tokens = 0;
  config.workers_guess = false;
  config.scheduler.max_draft_rows = 0;
  config.hidden_size = 0;
  TANDEM_RETURN_IF_ERROR(config.Validate());
  return config;
}

absl::Status ServerProfile::CheckWithoutSteps() const {
  ServerProfile copy = *this;
  copy.steps = {.prefill = {.sizes = {1}, .us = {1}}, .decode = {.sizes = {1}, .us = {1}}};
  for (const config::Field& field : FieldsOf(copy)) TANDEM_RETURN_IF_ERROR(field.Check());
  if (model.find_first_of("#\"'\n") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("a line of a profile cannot hold the model's path ", config::Quoted(model),
                     ": it has a #, a quote or a line's end; give it another name"));
  }
  return copy.Engine().status();
}

absl::Status ServerProfile::Set(const std::string& assignment) {
  std::vector<config::Field> fields = FieldsOf(*this);
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("needed NAME=VALUE, found ", config::Quoted(assignment)));
  }
  const std::string name = assignment.substr(0, equals);
  const auto field =
      std::ranges::find_if(fields, [&](const config::Field& each) { return each.flag() == name; });
  if (field == fields.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no setting ", config::Quoted(name), ", there are ", absl::StrJoin(Names(fields), ", ")));
  }
  return SetField(*field, assignment.substr(equals + 1));
}

std::string ToText(ServerProfile profile) {
  config::FieldList list;
  profile.ForEach(list);
  std::string text;
  for (const config::FieldList::Section& section : list.sections()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", "# ", Sv(section.title), "\n");
    for (const config::Field& field : section.fields) {
      absl::StrAppend(&text, Sv(field.flag()), " = \"", field.Text(), "\"\n");
    }
  }
  return text;
}

absl::StatusOr<ServerProfile> ReadServerProfile(const std::string& path, const std::string& flag) {
  TANDEM_ASSIGN_OR_RETURN(const cli::ConfigFile file, cli::ConfigFile::Read(path, flag));
  ServerProfile profile;
  TANDEM_RETURN_IF_ERROR(Annotate(Fill(file, profile), absl::StrCat(flag, " ", path)));
  return profile;
}

}  // namespace tandem::coordinator
