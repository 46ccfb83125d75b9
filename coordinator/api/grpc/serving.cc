#include "coordinator/api/grpc/serving.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

void Serving::Begin(ServingModel model, EngineHandle& engine, size_t max_requests,
                    TraceRecorder* recorder) {
  owned_.reset(new Parts{std::move(model), engine, recorder,
                         TokenizerPool(TokenizerPool::Limits::For(max_requests))});
  parts_.store(owned_.get(), std::memory_order_release);
}

absl::StatusOr<Serving::Parts*> Serving::Get() const {
  Parts* const parts = parts_.load(std::memory_order_acquire);
  if (parts != nullptr) return parts;
  return absl::UnavailableError(
      absl::StrCat("the server is loading its model: ", state_.Get().Text()));
}

}  // namespace tandem::coordinator
