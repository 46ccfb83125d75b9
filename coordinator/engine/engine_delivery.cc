// EngineCore's side of its requests' streams: what a step gave them, and how they end.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "coordinator/engine/engine_core.h"

namespace tandem::coordinator {

void EngineCore::Cancel(uint64_t arrival) {
  if (!generations_.contains(arrival)) return;
  const std::unique_ptr<Generation> generation = Leave(arrival);
  generation->request.stream->OnEnd(absl::OkStatus(), FinishReason::kCancelled,
                                    generation->usage());
}

void EngineCore::Deliver() {
  for (Delivery& delivery : deliveries_) DeliverTo(delivery);
  deliveries_.clear();
}

void EngineCore::DeliverTo(Delivery& delivery) {
  auto found = generations_.find(delivery.arrival);
  if (found == generations_.end()) return;
  const Generation& generation = *found->second;
  if (!delivery.prompt_logprobs.empty()) {
    generation.request.stream->OnPromptLogprobs(std::move(delivery.prompt_logprobs));
  }
  if (!delivery.token.has_value()) return;
  if (delivery.reason == FinishReason::kNone) {
    const bool goes_on = generation.request.stream->OnToken(*delivery.token, FinishReason::kNone,
                                                            generation.usage());
    if (!goes_on) Leave(delivery.arrival);
  } else {
    const std::unique_ptr<Generation> last = Leave(delivery.arrival);
    last->request.stream->OnToken(*delivery.token, delivery.reason, last->usage());
  }
}

std::unique_ptr<Generation> EngineCore::Leave(uint64_t arrival) {
  auto node = generations_.extract(arrival);
  TANDEM_CHECK(!node.empty());
  std::unique_ptr<Generation> generation = std::move(node.mapped());
  scheduler_.Finish(*generation);
  if (on_leave_) on_leave_(*generation);
  return generation;
}

void EngineCore::EndAll(const absl::Status& status, FinishReason reason) {
  std::vector<uint64_t> arrivals;
  for (const auto& [arrival, generation] : generations_) arrivals.push_back(arrival);
  std::ranges::sort(arrivals);
  for (uint64_t arrival : arrivals) {
    const std::unique_ptr<Generation> generation = Leave(arrival);
    generation->request.stream->OnEnd(status, reason, generation->usage());
  }
}

}  // namespace tandem::coordinator
