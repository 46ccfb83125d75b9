// Bytes of recurrent state. Pure functions, thread-safe.
#ifndef TANDEM_COMMON_MODEL_STATE_BYTES_H_
#define TANDEM_COMMON_MODEL_STATE_BYTES_H_

#include <cstdint>

#include "common/model/shard.h"
#include "common/model/spec.h"

namespace tandem::model {

// A rank's sizes of one recurrent layer's state, in F32 values per sequence.
struct StateShape {
  uint32_t key_heads = 0;
  uint32_t value_heads = 0;
  uint32_t channels = 0;       // of the short convolution
  uint64_t conv_values = 0;    // its last inputs
  uint64_t matrix_values = 0;  // a matrix per value head
};

// REQUIRES: the model has recurrent layers.
StateShape StateShapeOf(const ModelSpec& spec, const ShardPlan& plan);

// Of one sequence on a rank, all layers together; 0 without recurrent layers.
uint64_t StateBytesPerSequence(const ModelSpec& spec, const ShardPlan& plan);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_STATE_BYTES_H_
