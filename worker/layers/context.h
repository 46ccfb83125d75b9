// Passed to every layer: one rank's backend, its communicator and the step's activations.
#ifndef TANDEM_WORKER_LAYERS_CONTEXT_H_
#define TANDEM_WORKER_LAYERS_CONTEXT_H_

#include <cstdint>
#include <span>

#include "kernels/backend.h"
#include "worker/comm/communicator.h"
#include "worker/layers/arena.h"

namespace tandem::worker {

// Adjacent tokens of a step whose sequences have the same adapter.
struct AdapterRun {
  uint32_t first_token = 0;
  uint32_t tokens = 0;
  uint32_t adapter = 0;  // its number among the loaded ones
  bool operator==(const AdapterRun&) const = default;
};

// Borrowed for one encoding. `comm` is null in a plan pass: collectives need no scratch.
struct LayerContext {
  kernels::Backend& backend;
  Communicator* comm;
  Arena& arena;
  // (T): 0 where a row is padding of a decode graph; null: no row is.
  const int32_t* lengths = nullptr;

  // Of a model with adapters; no run: the step has none.
  std::span<const AdapterRun> adapter_runs{};

  bool adapts() const { return !adapter_runs.empty(); }
  int ranks() const { return comm == nullptr ? 1 : comm->size(); }
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LAYERS_CONTEXT_H_
