// The rows of RmsNorm and LayerNorm: kept in registers between the sums and the output if dim is a
// multiple of 4 (vectorised) and not too large, else read again.
//
// A row is computed by a warp (short rows, several per block) or by a block. Thread i of `threads`
// has the runs i, i + threads, ... of kWidth values: the order of sums depends only on `dim`, not
// on alignment. In registers eight consecutive threads have a group of 32 values, which they can
// round to int8 as they write the row.
#ifndef TANDEM_KERNELS_CUDA_NORM_NORM_ROW_H_
#define TANDEM_KERNELS_CUDA_NORM_NORM_ROW_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/quantize_group.h"
#include "kernels/cuda/device/store_bf16.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kNormThreads = 512;  // at most
static_assert(kMaxNormOfWarp == 4 * 4 * kWarp && kMaxNormInRegisters == 8 * 4 * kNormThreads);
inline constexpr uint32_t kNormWarps = 4;  // per block, if a warp has a row

// Arguments of a norm kernel.
template <typename Params>
struct NormTask {
  Params params;
  bool aligned;  // a run of four is one access of 16 bytes
  RoundedRows rounded;
};

// kRunsInRegisters: runs per thread that stay in registers; 0: none do, and runs are single values.
template <uint32_t kRunsInRegisters, bool kRowPerWarp>
class NormRow {
 public:
  static constexpr bool kInRegisters = kRunsInRegisters > 0;
  static constexpr uint32_t kWidth = kInRegisters ? 4 : 1;
  static constexpr uint32_t kRuns = kInRegisters ? kRunsInRegisters : 1;

  // residual += add, if any; then f(value) for each.
  template <typename Params, typename F>
  __device__ NormRow(const NormTask<Params>& task, F f)
      : row_(kRowPerWarp ? blockIdx.x * kNormWarps + threadIdx.x / kWarp : blockIdx.x),
        inside_(row_ < task.params.rows),
        aligned_(task.aligned),
        dim_(task.params.dim),
        residual_(task.params.residual + static_cast<size_t>(row_) * dim_) {
    const float* const add = task.params.add;
    const float* const more = add == nullptr ? nullptr : add + static_cast<size_t>(row_) * dim_;
    ForEachRun([&](uint32_t i, uint32_t run) {
      values_[run] = Read(residual_ + i);
      if (more != nullptr) {
        const Floats<kWidth> added = Read(more + i);
#pragma unroll
        for (uint32_t j = 0; j < kWidth; ++j) values_[run].at[j] += added.at[j];
        Write(residual_ + i, values_[run]);
      }
#pragma unroll
      for (uint32_t j = 0; j < kWidth; ++j) f(values_[run].at[j]);
    });
  }

  // f(value) for each of the thread's values.
  template <typename F>
  __device__ void ForEach(F f) const {
    ForEachRun([&](uint32_t i, uint32_t run) {
      const Floats<kWidth> values = kInRegisters ? values_[run] : Read(residual_ + i);
#pragma unroll
      for (uint32_t j = 0; j < kWidth; ++j) f(values.at[j]);
    });
  }

  // out[i] = f(value i, i), a run at a time, and the same rounded. `out` may be null. All threads
  // call it.
  template <typename F>
  __device__ void WriteAll(float* out, uint32_t out_stride, const RoundedRows& rounded, F f) const {
    float* const to = out == nullptr ? out : out + static_cast<size_t>(row_) * out_stride;
    const auto write = [&](uint32_t i, uint32_t run) {
      const Floats<kWidth> values = f(kInRegisters ? values_[run] : Read(residual_ + i), i);
      if (to != nullptr) Write(to + i, values);
      if (rounded.bf16.out != nullptr) StoreBf16(rounded.bf16.At(row_, i), values);
      return values;
    };
    if constexpr (kInRegisters) {
      if (rounded.bytes != nullptr) return QuantizeRuns(rounded.bytes, write);
    }
    ForEachRun(write);
  }

  // A run of an array.
  __device__ Floats<kWidth> Read(const float* from) const {
    if (aligned_) return Load<kWidth>(from);
    Floats<kWidth> values;
#pragma unroll
    for (uint32_t j = 0; j < kWidth; ++j) values.at[j] = from[j];
    return values;
  }

  __device__ uint32_t index() const { return row_; }
  __device__ bool inside() const { return inside_; }

  template <typename T>
  __device__ T Sum(T mine, SharedArray<T> room) const {
    return kRowPerWarp ? WarpSum(mine) : BlockSum(mine, room);
  }

 private:
  // The groups of what f(i, run) returns for each run.
  template <typename F>
  __device__ void QuantizeRuns(Int8Group* bytes, F f) const {
#pragma unroll
    for (uint32_t run = 0; run < kRuns; ++run) {
      const uint32_t i = BeginOf(run), group = i / 32;
      Floats<kWidth> values = {};
      if (inside_ && i < dim_) values = f(i, run);
      const bool has = inside_ && 32 * group < dim_;
      QuantizeGroup(values.at, has ? bytes + group : nullptr);
    }
  }

  __device__ void Write(float* to, const Floats<kWidth>& values) const {
    if (aligned_) return Store(to, values);
#pragma unroll
    for (uint32_t j = 0; j < kWidth; ++j) to[j] = values.at[j];
  }

  static __device__ uint32_t Thread() { return kRowPerWarp ? threadIdx.x % kWarp : threadIdx.x; }
  static __device__ uint32_t Threads() { return kRowPerWarp ? kWarp : blockDim.x; }
  static __device__ uint32_t BeginOf(uint32_t run) { return (run * Threads() + Thread()) * kWidth; }

  template <typename F>
  __device__ void ForEachRun(F f) const {
    if constexpr (kInRegisters) {
#pragma unroll
      for (uint32_t run = 0; run < kRuns; ++run) {
        const uint32_t i = BeginOf(run);
        if (inside_ && i < dim_) f(i, run);
      }
    } else {
      for (uint32_t i = Thread(); inside_ && i < dim_; i += Threads()) f(i, 0);
    }
  }

  const uint32_t row_;
  const bool inside_;
  const bool aligned_;
  const uint32_t dim_;
  float* const residual_;
  Floats<kWidth> values_[kRuns];
};

// Launches Kernel<runs, row per warp>::kRun for rows of `dim`.
template <template <uint32_t, bool> typename Kernel, typename Params>
void LaunchNorm(Stream& stream, const char* name, const Params& params, bool aligned,
                const RoundedRows& rounded, size_t shared_bytes) {
  const NormTask<Params> task = {params, aligned, rounded};
  auto row_per_block = [&](void (*kernel)(NormTask<Params>), uint32_t threads) {
    stream.LaunchEarly(name, kernel, params.rows, threads, shared_bytes, task);
  };
  auto row_per_warp = [&](void (*kernel)(NormTask<Params>)) {
    stream.LaunchEarly(name, kernel, Blocks(params.rows, kNormWarps), kNormWarps * kWarp,
                       shared_bytes, task);
  };
  const uint32_t runs = params.dim / 4;
  if (!NormInRegisters(params.dim)) {
    row_per_block(Kernel<0, false>::kRun, params.dim <= 256 ? 64 : 256);
  } else if (runs <= kWarp) {
    row_per_warp(Kernel<1, true>::kRun);
  } else if (runs <= 4 * kWarp) {
    row_per_warp(Kernel<4, true>::kRun);
  } else if (runs <= kNormThreads) {
    row_per_block(Kernel<1, false>::kRun, Blocks(runs, kWarp) * kWarp);
  } else if (runs <= 2 * kNormThreads) {
    row_per_block(Kernel<2, false>::kRun, Blocks(runs, 2 * kWarp) * kWarp);
  } else if (runs <= 4 * kNormThreads) {
    row_per_block(Kernel<4, false>::kRun, Blocks(runs, 4 * kWarp) * kWarp);
  } else {
    row_per_block(Kernel<8, false>::kRun, Blocks(runs, 8 * kWarp) * kWarp);
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_NORM_NORM_ROW_H_
