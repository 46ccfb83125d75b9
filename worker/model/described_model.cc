#include "worker/model/described_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/model/build_spec.h"
#include "common/model/draft_model.h"
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

absl::StatusOr<std::vector<uint32_t>> VocabStarts(const model::ModelSpec& spec, int size,
                                                  bool expert_parallel) {
  std::vector<uint32_t> starts;
  for (int rank = 0; rank < size; ++rank) {
    TANDEM_ASSIGN_OR_RETURN(model::ShardPlan plan,
                            model::MakeShardPlan(spec, rank, size, expert_parallel));
    starts.push_back(plan.vocab.begin);
  }
  starts.push_back(spec.vocab_size);
  return starts;
}

absl::StatusOr<gguf::File> OpenModel(const std::string& path, uint64_t fingerprint) {
  TANDEM_ASSIGN_OR_RETURN(gguf::File file, gguf::File::Open(path));
  TANDEM_RETURN_IF_ERROR(CheckFingerprint(file, fingerprint));
  return file;
}

// All but the backend.
absl::StatusOr<std::unique_ptr<DescribedModel>> DescribeFile(gguf::File file,
                                                             const model::SpecOptions& options,
                                                             const config::WorkerAssignment& rank,
                                                             bool expert_parallel) {
  std::unique_ptr<DescribedModel> model(new DescribedModel{.file = std::move(file)});
  TANDEM_ASSIGN_OR_RETURN(model->spec, model::BuildSpec(model->file, options));
  TANDEM_ASSIGN_OR_RETURN(model->plan,
                          model::MakeShardPlan(model->spec, rank.rank, rank.size, expert_parallel));
  TANDEM_ASSIGN_OR_RETURN(model->vocab_starts,
                          VocabStarts(model->spec, rank.size, expert_parallel));
  TANDEM_ASSIGN_OR_RETURN(model->shapes,
                          RankWeights::Describe(model->file, model->spec, model->plan));
  return model;
}

// On the backend of `model`, for which it guesses.
absl::StatusOr<std::unique_ptr<DescribedModel>> DescribeDraft(const LoadOptions& options,
                                                              const DescribedModel& model) {
  const config::ModelConfig& asked = options.config.model;
  TANDEM_ASSIGN_OR_RETURN(gguf::File file,
                          OpenModel(asked.draft_path, options.assignment.draft_fingerprint));
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<DescribedModel> draft,
      DescribeFile(std::move(file), {.max_model_len = asked.spec.max_model_len}, options.assignment,
                   /*expert_parallel=*/false));
  TANDEM_RETURN_IF_ERROR(model::CheckDraftModel(model.file, model.spec, draft->file, draft->spec));
  TANDEM_RETURN_IF_ERROR(model::CheckDraftContext(draft->spec, asked.spec.max_model_len));
  draft->activation_type = model.activation_type;
  draft->backend = model.backend;
  return draft;
}

// In the order of the configuration.
absl::StatusOr<std::vector<model::Adapter>> OpenAdapters(const LoadOptions& options,
                                                         const model::ModelSpec& spec) {
  std::vector<model::Adapter> adapters;
  uint64_t fingerprint = 0;
  for (const config::LoraModule& module : options.config.model.lora_modules) {
    absl::StatusOr<model::Adapter> adapter = model::OpenAdapter(module.path, spec);
    if (!adapter.ok()) return Annotate(adapter.status(), module.path);
    fingerprint = model::AddContents(fingerprint, adapter->file);
    adapters.push_back(*std::move(adapter));
  }
  const uint64_t wanted = options.assignment.adapters_fingerprint;
  if (wanted == 0 || fingerprint == wanted) return adapters;
  return absl::FailedPreconditionError(
      absl::StrCat("--lora-modules: files differ from the coordinator's: fingerprint ",
                   absl::Hex(fingerprint, absl::kZeroPad16), " here, ",
                   absl::Hex(wanted, absl::kZeroPad16), " there"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DescribedModel>> DescribeModel(const LoadOptions& options) {
  const config::ModelConfig& asked = options.config.model;
  const config::WorkerAssignment& rank = options.assignment;
  absl::StatusOr<gguf::File> file = OpenModel(asked.path, rank.model_fingerprint);
  if (!file.ok()) return Annotate(file.status(), asked.path);
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<DescribedModel> model,
                          DescribeFile(*std::move(file), asked.spec, rank, asked.expert_parallel));
  TANDEM_ASSIGN_OR_RETURN(model->adapters, OpenAdapters(options, model->spec));
  model->adapter_shapes = RankAdapters::Describe(model->adapters, model->spec, model->plan);
  TANDEM_ASSIGN_OR_RETURN(
      model->backend, kernels::MakeBackend(options.config.device, rank.device_index, rank.cpus));
  TANDEM_RETURN_IF_ERROR(model->backend->UseActivations(model->activation_type));
  model->device_memory = model->backend->Memory();
  if (asked.draft_path.empty()) return model;
  absl::StatusOr<std::unique_ptr<DescribedModel>> draft = DescribeDraft(options, *model);
  if (!draft.ok()) return Annotate(draft.status(), asked.draft_path);
  model->draft = *std::move(draft);
  return model;
}

}  // namespace tandem::worker
