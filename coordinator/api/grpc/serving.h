// Serving: what the calls of the public services need to be answered: the model and the engine,
// once there are, and room for requests.
//
// Thread-safe, but for Begin.
#ifndef TANDEM_COORDINATOR_API_GRPC_SERVING_H_
#define TANDEM_COORDINATOR_API_GRPC_SERVING_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "coordinator/api/auth/gate.h"
#include "coordinator/api/byte_budget.h"
#include "coordinator/api/grpc/open_calls.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/api/tokenizer_pool.h"
#include "coordinator/engine/engine.h"
#include "coordinator/observe/refusal_counts.h"
#include "coordinator/observe/server_state.h"
#include "coordinator/observe/trace_recorder.h"

namespace tandem::coordinator {

// Of requests that are waiting for the tokenizer or being answered by it.
inline constexpr size_t kMaxRequestBytes = 32 << 20;

class Serving {
 public:
  struct Parts {
    ServingModel model;
    EngineHandle& engine;
    TraceRecorder* recorder;  // null: nothing can be recorded
    TokenizerPool pool;
  };

  // `state`, which must outlive it, says how far a server without a model is. `of_port`: whose
  // tokens have limits; null: there are none. `refused_calls`: where they are counted.
  Serving(OpenCalls& of_server, const ServerState& state, Gate* of_port,
          RefusalCounts& refused_calls)
      : calls(of_server), gate(of_port), refusals(refused_calls), state_(state) {}

  // Calls are answered from here on. `engine` and `recorder`, which may be null, must outlive the
  // server; the tokenizer's queue holds `max_requests` texts. Once.
  void Begin(ServingModel model, EngineHandle& engine, size_t max_requests,
             TraceRecorder* recorder);
  // UNAVAILABLE before Begin, with the state.
  absl::StatusOr<Parts*> Get() const;

  OpenCalls& calls;
  Gate* const gate;
  RefusalCounts& refusals;
  ByteBudget budget{kMaxRequestBytes};

 private:
  const ServerState& state_;
  std::unique_ptr<Parts> owned_;        // set by Begin
  std::atomic<Parts*> parts_{nullptr};  // owned_, once calls may use it
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_SERVING_H_
