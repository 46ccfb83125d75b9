#include "worker/model/loaded_model.h"

#include <utility>

#include "common/base/status.h"

namespace tandem::worker {
namespace {

// Progress of a part of all weights, with so many bytes before it and after it. Borrows `whole`.
LoadProgress OfPart(const LoadProgress& whole, uint64_t before, uint64_t after) {
  if (!whole) return nullptr;
  return [&whole, before, after](uint64_t done, uint64_t total) {
    whole(before + done, before + total + after);
  };
}

}  // namespace

LoadedModel::LoadedModel(std::unique_ptr<DescribedModel> described)
    : described_(std::move(described)) {}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadWeights(std::unique_ptr<DescribedModel> described,
                                                         const LoadProgress& progress) {
  std::unique_ptr<LoadedModel> loaded(new LoadedModel(std::move(described)));
  const DescribedModel& model = *loaded->described_;
  std::unique_ptr<DescribedModel> draft = std::move(loaded->described_->draft);
  const uint64_t draft_bytes = draft == nullptr ? 0 : draft->shapes->bytes();
  TANDEM_ASSIGN_OR_RETURN(loaded->weights_,
                          RankWeights::Load(model.file, model.spec, model.plan, *model.backend,
                                            OfPart(progress, 0, draft_bytes)));
  TANDEM_ASSIGN_OR_RETURN(loaded->adapters_, RankAdapters::Load(model.adapters, model.spec,
                                                                model.plan, *model.backend));
  TANDEM_RETURN_IF_ERROR(loaded->PlaceRope());
  const ModelParts parts{
      .spec = model.spec,
      .plan = model.plan,
      .weights = *loaded->weights_,
      .adapters = loaded->adapters_,
      .inv_freq = reinterpret_cast<const float*>(loaded->inv_freq_.data()),
      .window_inv_freq = reinterpret_cast<const float*>(loaded->window_inv_freq_.data())};
  loaded->decoder_ = std::make_unique<Decoder>(parts, model.vocab_starts);
  if (model.spec.has_draft_head) loaded->draft_head_.emplace(parts, model.vocab_starts);
  if (draft == nullptr) return loaded;
  TANDEM_ASSIGN_OR_RETURN(
      loaded->draft_,
      LoadWeights(std::move(draft), OfPart(progress, loaded->weights_->bytes(), /*after=*/0)));
  return loaded;
}

absl::Status LoadedModel::PlaceRope() {
  TANDEM_ASSIGN_OR_RETURN(inv_freq_, PlaceFloats(spec().rope.inv_freq));
  if (!spec().window_rope.has_value()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(window_inv_freq_, PlaceFloats(spec().window_rope->inv_freq));
  return absl::OkStatus();
}

absl::StatusOr<kernels::Buffer> LoadedModel::PlaceFloats(const std::vector<float>& host) {
  if (host.empty()) return kernels::Buffer();
  kernels::Backend& device = backend();
  TANDEM_ASSIGN_OR_RETURN(kernels::Buffer placed, device.Allocate(host.size() * sizeof(float)));
  device.BeginEncode(kernels::EncodeMode::kRun);
  device.Upload(placed.data(), host.data(), host.size() * sizeof(float));
  TANDEM_RETURN_IF_ERROR(device.SubmitAndWait(Deadline::After(std::chrono::minutes(1))));
  return placed;
}

}  // namespace tandem::worker
