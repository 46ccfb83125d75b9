// What a layer keeps of earlier steps: KV pages, or recurrent states.
#ifndef TANDEM_WORKER_MODEL_LAYER_CACHE_H_
#define TANDEM_WORKER_MODEL_LAYER_CACHE_H_

#include "kernels/ops.h"

namespace tandem::worker {

// The states of one recurrent layer, one per sequence slot, in device memory. Null for layers of
// attention.
struct LayerStates {
  float* conv = nullptr;    // kernels::ShortConvParams::state
  float* matrix = nullptr;  // kernels::GatedDeltaRuleParams::state
};

struct LayerCache {
  const kernels::KvPages& pages;
  const LayerStates& states;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_LAYER_CACHE_H_
