// EngineCore's updates to its requests' streams: results of steps, and the end of requests.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "coordinator/engine/engine_core.h"

namespace tandem::coordinator {

void EngineCore::Cancel(RequestHandle handle) {
  auto found = generations_.find(handle);
  if (found == generations_.end()) return;
  const Request& request = found->second->request;
  if (clock_.Now() >= request.deadline - request.deadline_slack) {
    Expire(*found->second);
  } else {
    Send(*found->second, {.reason = FinishReason::kCancelled});
  }
  Deliver();
}

void EngineCore::Stop(RequestHandle handle) {
  const auto found = generations_.find(handle);
  if (found == generations_.end()) return;
  tracer_.Stopped(*found->second);
  Leave(handle);
}

void EngineCore::EndAll(const absl::Status& status, FinishReason reason) {
  std::vector<uint64_t> handles;
  for (const auto& [handle, generation] : generations_) handles.push_back(handle);
  std::ranges::sort(handles);
  for (RequestHandle handle : handles) {
    Send(*generations_.at(handle), {.reason = reason, .status = status});
  }
  Deliver();
}

void EngineCore::EndExpired() {
  while (!deadlines_.empty() && clock_.Now() >= deadlines_.begin()->first) {
    Expire(*generations_.at(deadlines_.begin()->second));
  }
  Deliver();
}

void EngineCore::Expire(const Generation& generation) {
  ++num_expired_;
  const uint32_t num_tokens = generation.num_generated();
  std::string when = "while it waited for room";
  if (num_tokens > 0 || (generation.was_admitted && generation.generates)) {
    when = absl::StrCat("after ", num_tokens, " of up to ", generation.request.sampling.max_tokens,
                        " tokens");
  } else if (generation.was_admitted) {
    when = absl::StrCat("after ", generation.num_computed, " of ", generation.prompt_len,
                        " tokens of its prompt");
  }
  Send(generation,
       {.status = absl::DeadlineExceededError(absl::StrCat(
            "the request's deadline (its call's, or --request-timeout) has passed ", when))});
}

void EngineCore::EndCulprit(const Generation& generation, const absl::Status& loss) {
  const absl::Status status = absl::InternalError(
      absl::StrCat("request \"", generation.request.id,
                   "\" ended a worker each time it was computed, at last alone: ", loss.message()));
  TANDEM_LOG(kError) << status.message();
  Send(generation, {.status = status});
  Deliver();
}

void EngineCore::Send(const Generation& generation, StreamUpdate update) {
  update.usage = generation.usage();
  update.scheduled_at = generation.scheduled_at;
  tracer_.Updated(generation, update);
  const bool last = update.last();
  deliveries_.push_back({.handle = generation.handle,
                         .stream = generation.request.stream,
                         .update = std::move(update)});
  if (last) Leave(generation.handle);
}

void EngineCore::Deliver() {
  if (deliveries_.empty()) return;
  std::vector<Delivery> deliveries = std::exchange(deliveries_, {});
  if (deliver_) return deliver_(std::move(deliveries));
  for (Delivery& delivery : deliveries) {
    const bool last = delivery.update.last();
    const Taken taken = delivery.stream->OnUpdate(std::move(delivery.update));
    if (taken.stopped && !last) Stop(delivery.handle);
    delivery.stream->Flush();
  }
}

void EngineCore::Leave(RequestHandle handle) {
  auto node = generations_.extract(handle);
  TANDEM_CHECK(!node.empty());
  deadlines_.erase({node.mapped()->request.deadline, handle});
  scheduler_.Finish(*node.mapped());
  if (node.mapped()->num_in_flight > 0) leaving_.push_back(std::move(node.mapped()));
}

}  // namespace tandem::coordinator
