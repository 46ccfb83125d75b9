// What the kernels of gate_up.h get, and their launches, by types.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_TASKS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_TASKS_H_

#include "kernels/cuda/matmul/gate_up.h"
#include "kernels/cuda/matmul/gemv.h"

namespace tandem::kernels::cuda {

struct GateAndUp {
  MatVecPart gate;
  MatVecPart up;
  Activation function;
};

struct GateUpMatVecTask {
  GateAndUp weights;
  BlockMatVecInputs inputs;
  Int8Group* to;
};

struct GateUpTask {
  GateAndUp weights;
  Bf16Inputs x;
  Bf16Rows to;
};

// Each handles its own types; returns whether `type` is one of them.
bool LaunchGateUpMatVecOf32(Stream& stream, tensor::Type type, const GateUpMatVecTask& task);
bool LaunchGateUpMatVecOf256(Stream& stream, tensor::Type type, const GateUpMatVecTask& task);
bool LaunchGateUpMatVecOfGrids(Stream& stream, tensor::Type type, const GateUpMatVecTask& task);
bool LaunchGateUpMatVecOfFewBits(Stream& stream, tensor::Type type, const GateUpMatVecTask& task);
bool LaunchGateUpOf32(Stream& stream, tensor::Type type, const GateUpTask& task);
bool LaunchGateUpOf256(Stream& stream, tensor::Type type, const GateUpTask& task);
bool LaunchGateUpOfGrids(Stream& stream, tensor::Type type, const GateUpTask& task);
bool LaunchGateUpOfFewBits(Stream& stream, tensor::Type type, const GateUpTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GATE_UP_TASKS_H_
