#include "coordinator/api/grpc/serving.h"

#include <utility>

namespace tandem::coordinator {

void Serving::Begin(ServingModel model, EngineHandle& engine, size_t max_requests) {
  owned_.reset(
      new Parts{std::move(model), engine, TokenizerPool(TokenizerPool::Limits::For(max_requests))});
  parts_.store(owned_.get(), std::memory_order_release);
}

absl::StatusOr<Serving::Parts*> Serving::Get() const {
  Parts* const parts = parts_.load(std::memory_order_acquire);
  if (parts == nullptr) return absl::UnavailableError("the server is loading its model");
  return parts;
}

}  // namespace tandem::coordinator
