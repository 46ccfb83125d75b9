// EngineCore's side of its requests' streams: what a step gave them, and how they end.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "coordinator/engine/engine_core.h"

namespace tandem::coordinator {

void EngineCore::Cancel(RequestHandle handle) {
  if (!generations_.contains(handle)) return;
  const std::shared_ptr<Generation> generation = Leave(handle);
  generation->request.stream->OnEnd(absl::OkStatus(), FinishReason::kCancelled,
                                    generation->usage());
}

void EngineCore::Deliver() {
  for (Delivery& delivery : deliveries_) DeliverTo(delivery);
  deliveries_.clear();
}

void EngineCore::DeliverTo(Delivery& delivery) {
  auto found = generations_.find(delivery.handle);
  if (found == generations_.end()) return;
  const Generation& generation = *found->second;
  if (!delivery.prompt_logprobs.empty()) {
    generation.request.stream->OnPromptLogprobs(std::move(delivery.prompt_logprobs));
  }
  for (const GeneratedToken& token : delivery.tokens) {
    if (&token == &delivery.tokens.back() && delivery.reason != FinishReason::kNone) {
      const std::shared_ptr<Generation> last = Leave(delivery.handle);
      last->request.stream->OnToken(token, delivery.reason, last->usage());
      return;
    }
    if (!generation.request.stream->OnToken(token, FinishReason::kNone, generation.usage())) {
      Leave(delivery.handle);
      return;
    }
  }
}

std::shared_ptr<Generation> EngineCore::Leave(RequestHandle handle) {
  auto node = generations_.extract(handle);
  TANDEM_CHECK(!node.empty());
  std::shared_ptr<Generation> generation = std::move(node.mapped());
  scheduler_.Finish(*generation);
  if (generation->num_in_flight > 0) leaving_.push_back(generation);
  if (on_leave_) on_leave_(*generation);
  return generation;
}

void EngineCore::EndAll(const absl::Status& status, FinishReason reason) {
  std::vector<RequestHandle> handles;
  for (const auto& [handle, generation] : generations_) handles.push_back(handle);
  std::ranges::sort(handles);
  for (RequestHandle handle : handles) {
    const std::shared_ptr<Generation> generation = Leave(handle);
    generation->request.stream->OnEnd(status, reason, generation->usage());
  }
}

}  // namespace tandem::coordinator
