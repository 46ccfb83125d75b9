#include "worker/model/loaded_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/model/build_spec.h"
#include "common/model/fingerprint.h"

namespace tandem::worker {
namespace {

absl::Status CheckFingerprint(const gguf::File& file, uint64_t wanted) {
  const uint64_t found = model::ModelFingerprint(file);
  if (wanted == 0 || found == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "model file differs from the coordinator's: fingerprint ", absl::Hex(found, absl::kZeroPad16),
      " here, ", absl::Hex(wanted, absl::kZeroPad16), " there"));
}

// Where each rank's vocabulary slice begins, and the end of the last.
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

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Load(const LoadOptions& options,
                                                               const LoadProgress& progress,
                                                               const FitCheck& fits) {
  TANDEM_ASSIGN_OR_RETURN(gguf::File file, gguf::File::Open(options.path));
  TANDEM_RETURN_IF_ERROR(CheckFingerprint(file, options.fingerprint));
  std::unique_ptr<LoadedModel> loaded(new LoadedModel(std::move(file)));
  TANDEM_ASSIGN_OR_RETURN(loaded->spec_, model::BuildSpec(loaded->file_, options.spec));
  TANDEM_ASSIGN_OR_RETURN(
      loaded->plan_,
      model::MakeShardPlan(loaded->spec_, options.rank, options.size, options.expert_parallel));
  TANDEM_ASSIGN_OR_RETURN(loaded->backend_, kernels::MakeBackend(options.backend));
  loaded->device_memory_ = loaded->backend_->Memory();
  if (fits != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(loaded->weights_,
                            RankWeights::Describe(loaded->file_, loaded->spec_, loaded->plan_));
    TANDEM_RETURN_IF_ERROR(loaded->MakeDecoder(options.size));
    TANDEM_RETURN_IF_ERROR(fits(*loaded));
    loaded->decoder_ = nullptr;  // it borrows the weights that are replaced now
  }
  TANDEM_ASSIGN_OR_RETURN(
      loaded->weights_,
      RankWeights::Load(loaded->file_, loaded->spec_, loaded->plan_, *loaded->backend_, progress));
  TANDEM_RETURN_IF_ERROR(loaded->PlaceRope());
  TANDEM_RETURN_IF_ERROR(loaded->MakeDecoder(options.size));
  return loaded;
}

absl::Status LoadedModel::PlaceRope() {
  TANDEM_ASSIGN_OR_RETURN(inv_freq_, PlaceFloats(spec_.rope.inv_freq));
  if (!spec_.window_rope.has_value()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(window_inv_freq_, PlaceFloats(spec_.window_rope->inv_freq));
  return absl::OkStatus();
}

absl::Status LoadedModel::MakeDecoder(int size) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<uint32_t> starts, VocabStarts(spec_, size));
  decoder_ = std::make_unique<Decoder>(spec_, plan_, std::move(starts), *weights_,
                                       reinterpret_cast<const float*>(inv_freq_.data()),
                                       reinterpret_cast<const float*>(window_inv_freq_.data()));
  return absl::OkStatus();
}

absl::StatusOr<kernels::Buffer> LoadedModel::PlaceFloats(const std::vector<float>& host) {
  if (host.empty()) return kernels::Buffer();
  TANDEM_ASSIGN_OR_RETURN(kernels::Buffer placed, backend_->Allocate(host.size() * sizeof(float)));
  backend_->BeginEncode(kernels::EncodeMode::kRun);
  backend_->Upload(placed.data(), host.data(), host.size() * sizeof(float));
  TANDEM_RETURN_IF_ERROR(backend_->Submit(Deadline::After(std::chrono::minutes(1))));
  TANDEM_RETURN_IF_ERROR(backend_->Wait());
  return placed;
}

}  // namespace tandem::worker
