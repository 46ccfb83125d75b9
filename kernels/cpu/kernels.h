// The task functions compiled once per instruction set, and their parameters. Baseline code encodes
// ops and picks a table; only the tables' functions use vector instructions.
#ifndef TANDEM_KERNELS_CPU_KERNELS_H_
#define TANDEM_KERNELS_CPU_KERNELS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/isa.h"
#include "kernels/host/task.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

// Values per task of ops with a single pass over memory: about a microsecond of work.
inline constexpr uint32_t kValuesPerTask = 4096;

struct RmsNormTask {
  RmsNormParams params;
  uint32_t rows_per_task;
};

inline RmsNormTask MakeRmsNormTask(const RmsNormParams& params) {
  return {params, std::max(1u, kValuesPerTask / std::max(1u, params.dim))};
}

// All arrays are dense: `count` consecutive values.
struct ActivateTask {
  Activation function;
  const float* gate;
  const float* up;
  float* out;
  const float* gate_scale;  // one per `cols` values, or null
  uint64_t cols;
  uint64_t count;
  uint64_t values_per_task;
};

// Channels of a task of ShortConv, columns of a task of GatedDeltaRule.
inline constexpr uint32_t kConvChannels = 64;
inline constexpr uint32_t kStateColumns = 64;

using RmsNormFn = void (*)(const RmsNormTask& task, const host::TaskContext& context);
using ActivateFn = void (*)(const ActivateTask& task, const host::TaskContext& context);

struct Kernels {
  RmsNormFn rms_norm;
  ActivateFn activate;
  // One token per task.
  void (*rope_write_kv)(const RopeWriteKvParams& params, const host::TaskContext& context);
  // Up to kConvChannels channels of a sequence per task.
  void (*short_conv)(const ShortConvParams& params, const host::TaskContext& context);
  // Up to kStateColumns columns of a head's state, of a sequence, per task; 3 dim floats of
  // scratch.
  void (*gated_delta_rule)(const GatedDeltaRuleParams& params, const host::TaskContext& context);
};

// Work through the items of an AttentionPlan in shared scratch, each thread until none is left.
struct AttentionKernels {
  void (*attend)(const AttentionTask& task, const host::TaskContext& context);
  void (*merge_splits)(const AttentionTask& task, const host::TaskContext& context);
};

namespace avx2 {
extern const Kernels kKernels;
extern const AttentionKernels kAttention;
}  // namespace avx2
// Only for pages that MultipliesInt16 accepts.
namespace avx2_int16 {
extern const AttentionKernels kAttention;
}
namespace avx512 {
extern const Kernels kKernels;
extern const AttentionKernels kAttention;
}  // namespace avx512
// Only for pages that MultipliesPairs accepts.
namespace avx512_bf16 {
extern const AttentionKernels kAttention;
}
// Only for pages that MultipliesBytes accepts.
namespace avx512_bytes {
extern const AttentionKernels kAttention;
}

inline const Kernels& KernelsOf(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kKernels : avx2::kKernels;
}

// Whether heads of these pages are made for products of more than one value a word.
inline bool HasWholeBlocks(const KvPages& pages) {
  return !pages.latent && pages.head_dim % 32 == 0 && pages.value_dim % 32 == 0;
}
// Whether attention multiplies what is in the pages as pairs of BF16.
inline bool MultipliesPairs(Isa isa, const KvPages& pages) {
  return isa == Isa::kAvx512 && HasFastBf16() && pages.type == tensor::Type::kBF16 &&
         HasWholeBlocks(pages);
}
// Whether it does as bytes (K) and pairs of BF16 (V).
inline bool MultipliesBytes(Isa isa, const KvPages& pages) {
  return isa == Isa::kAvx512 && HasFastBf16() && HasByteProducts() &&
         pages.type == tensor::Type::kQ8_0 && HasWholeBlocks(pages);
}
// Whether it does as 16-bit integers.
inline bool MultipliesInt16(Isa isa, const KvPages& pages) {
  return isa != Isa::kAvx512 && pages.type == tensor::Type::kQ8_0 && HasWholeBlocks(pages);
}
inline const AttentionKernels& AttentionKernelsOf(Isa isa, const KvPages& pages) {
  if (MultipliesPairs(isa, pages)) return avx512_bf16::kAttention;
  if (MultipliesBytes(isa, pages)) return avx512_bytes::kAttention;
  if (MultipliesInt16(isa, pages)) return avx2_int16::kAttention;
  return isa == Isa::kAvx512 ? avx512::kAttention : avx2::kAttention;
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_KERNELS_H_
