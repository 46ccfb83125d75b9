// Engine: the loop that turns requests into steps. One thread owns scheduler, KV cache and workers;
// all events arrive through a bounded inbox: drain inbox -> schedule -> build -> submit -> collect
// -> apply.
#ifndef TANDEM_COORDINATOR_ENGINE_ENGINE_H_
#define TANDEM_COORDINATOR_ENGINE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/engine/request.h"

namespace tandem::coordinator {

struct EngineStats {
  int64_t blocks_total = 0;
  int64_t blocks_free = 0;  // cached but unused blocks count as free
  int64_t blocks_cached = 0;
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t preemptions = 0;
  int64_t steps = 0;
  int64_t epoch = 0;
};

// The engine's interface to the API. Thread-safe.
class EngineHandle {
 public:
  virtual ~EngineHandle() = default;
  // Queues a request. INVALID_ARGUMENT, with both numbers, for a request that can never fit
  // (length, blocks); ALREADY_EXISTS for an id in flight, which is free again when its stream's
  // last Flush is called; RESOURCE_EXHAUSTED when the queue is full; UNAVAILABLE while shutting
  // down or after a worker was lost.
  virtual absl::StatusOr<RequestHandle> Add(Request request) = 0;
  // Ends a request; its blocks are free after the step in flight. No effect if it is already over,
  // even if another request has its id now.
  virtual void Cancel(RequestHandle handle) = 0;
  virtual EngineStats Stats() const = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_H_
