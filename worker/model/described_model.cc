#include "worker/model/described_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/model/build_spec.h"
#include "common/model/fingerprint.h"
#include "kernels/factory.h"

namespace tandem::worker {
namespace {

absl::Status CheckFingerprint(const gguf::File& file, uint64_t wanted) {
  const uint64_t found = model::ModelFingerprint(file);
  if (wanted == 0 || found == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "model file differs from the coordinator's: fingerprint ", absl::Hex(found, absl::kZeroPad16),
      " here, ", absl::Hex(wanted, absl::kZeroPad16), " there"));
}

absl::StatusOr<std::vector<uint32_t>> VocabStarts(const model::ModelSpec& spec, int size) {
  std::vector<uint32_t> starts;
  for (int rank = 0; rank < size; ++rank) {
    TANDEM_ASSIGN_OR_RETURN(model::ShardPlan plan, model::MakeShardPlan(spec, rank, size));
    starts.push_back(plan.vocab.begin);
  }
  starts.push_back(spec.vocab_size);
  return starts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DescribedModel>> DescribeModel(const LoadOptions& options) {
  const config::ModelConfig& asked = options.config.model;
  const config::WorkerAssignment& rank = options.assignment;
  absl::StatusOr<gguf::File> opened = gguf::File::Open(asked.path);
  if (!opened.ok()) return Annotate(opened.status(), asked.path);
  gguf::File file = *std::move(opened);
  TANDEM_RETURN_IF_ERROR(Annotate(CheckFingerprint(file, rank.model_fingerprint), asked.path));
  std::unique_ptr<DescribedModel> model(new DescribedModel{.file = std::move(file)});
  TANDEM_ASSIGN_OR_RETURN(model->spec, model::BuildSpec(model->file, asked.spec));
  TANDEM_ASSIGN_OR_RETURN(
      model->plan, model::MakeShardPlan(model->spec, rank.rank, rank.size, asked.expert_parallel));
  TANDEM_ASSIGN_OR_RETURN(model->vocab_starts, VocabStarts(model->spec, rank.size));
  TANDEM_ASSIGN_OR_RETURN(model->backend,
                          kernels::MakeBackend(options.config.device, rank.device_index));
  TANDEM_RETURN_IF_ERROR(model->backend->UseActivations(model->activation_type));
  model->device_memory = model->backend->Memory();
  TANDEM_ASSIGN_OR_RETURN(model->shapes,
                          RankWeights::Describe(model->file, model->spec, model->plan));
  return model;
}

}  // namespace tandem::worker
