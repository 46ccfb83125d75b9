// Source: Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
//
// One warp per head of a token: heads of q first, then of k, then of v. It norms its head if there
// is a norm before, rotates it in place, norms it if heads are normed, multiplies it by its
// temperature if it is of q, else writes it to its page in the page's type. A token's angles are
// computed once per block.
//
// Floor: reads and writes q and k, reads v, writes pages: 8 bytes per value of q, 8 and a page's
// value per value of k, 4 and a page's value per value of v.
#include "kernels/cuda/attention/rope_write_kv.h"

#include <variant>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cuda/attention/rope.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / kWarp;

struct RopeTask {
  RopeWriteKvParams params;
  HeadNorms norms;
  uint32_t first_row;  // of heads + kv_heads + kv_heads: q's are skipped if they stay as they are
  uint32_t rows;
};

// The head that begins at value `at`. The order of sums is that of RmsNorm's kernel for rows of a
// warp (norm/norm_row.h).
__device__ void Normalize(const HeadNorm& norm, size_t at, uint32_t dim) {
  if (norm.heads == nullptr) return;
  float* const head = norm.heads + at;
  const uint32_t first = threadIdx.x % kWarp * 4;
  float squares = 0;
  for (uint32_t i = first; i < dim; i += 4 * kWarp) {
#pragma unroll
    for (uint32_t j = i; j < i + 4; ++j) squares = fmaf(head[j], head[j], squares);
  }
  const float mean = WarpSum(squares) / static_cast<float>(dim);
  const float scale = 1.0f / sqrtf(mean + norm.epsilon);
  for (uint32_t i = first; i < dim; i += 4 * kWarp) {
#pragma unroll
    for (uint32_t j = i; j < i + 4; ++j) head[j] *= scale * norm.weight[j];
  }
  __syncwarp();  // other lanes rotate and store what this one has normed
}

__device__ void RotateHead(float* head, const RopeWriteKvParams& p, SharedArray<float> cosines,
                           SharedArray<float> sines) {
  float* const dims = head + p.rotary_begin;
  const uint32_t pairs = p.rotary_dims / 2;
  for (uint32_t i = threadIdx.x % kWarp; i < pairs; i += kWarp) {
    Rotate({cosines[i], sines[i]}, dims[p.halves ? i : 2 * i],
           dims[p.halves ? i + pairs : 2 * i + 1]);
  }
}

__device__ float QueryTemperature(const RopeWriteKvParams& p, int32_t position) {
  if (p.temperature_scale == 0.0f) return 1.0f;
  const int64_t step =
      (static_cast<int64_t>(position) + p.temperature_offset) / p.temperature_length;
  return 1.0f + p.temperature_scale * log1pf(static_cast<float>(step));
}

// Divides by the root mean square, if the heads are normed, and multiplies by `factor`. The warp
// has rotated the head.
__device__ void Scale(float* head, const RopeWriteKvParams& p, float factor) {
  const uint32_t dim = p.pages.head_dim;
  __syncwarp();  // lanes rotated pairs; from here on each has every 32nd dim
  if (p.norm_epsilon > 0.0f) {
    float squares = 0;
    for (uint32_t i = threadIdx.x % kWarp; i < dim; i += kWarp) squares += head[i] * head[i];
    factor /= sqrtf(WarpSum(squares) / static_cast<float>(dim) + p.norm_epsilon);
  }
  if (factor == 1.0f) return;
  for (uint32_t i = threadIdx.x % kWarp; i < dim; i += kWarp) head[i] *= factor;
}

// A block of 32 values, one per lane: scale and rounding as in reference/page_row.h.
__device__ void StoreBlock(float value, std::byte* block) {
  const uint32_t lane = threadIdx.x % kWarp;
  const float magnitude = fabsf(value);
  const bool finite = __all_sync(kAllLanes, magnitude < INFINITY);
  const float largest = WarpMax(magnitude);
  const uint16_t d = FloatToHalf(finite ? largest / 127.0f : NAN);
  const float scale = HalfToFloat(d);
  const bool has_value = scale > 0 && scale < INFINITY;
  const float steps = has_value ? rintf(value / scale) : 0.0f;
  if (lane == 0) *reinterpret_cast<uint16_t*>(block) = d;
  reinterpret_cast<int8_t*>(block)[sizeof(d) + lane] =
      static_cast<int8_t>(fminf(fmaxf(steps, -127.0f), 127.0f));
}

// The warp's row `row` of pages whose rows have `dim` values.
template <tensor::Type kType>
__device__ void StoreRow(const float* values, uint32_t dim, void* pages, size_t row) {
  const uint32_t lane = threadIdx.x % kWarp;
  if constexpr (kType == tensor::Type::kQ8_0) {
    constexpr size_t kBlockBytes = 34;
    std::byte* const blocks = static_cast<std::byte*>(pages) + row * (dim / 32) * kBlockBytes;
    for (uint32_t b = 0; b < dim / 32; ++b) StoreBlock(values[32 * b + lane], blocks + b * 34);
  } else {
    for (uint32_t i = lane; i < dim; i += kWarp)
      StorePageValue(kType, pages, row * dim + i, values[i]);
  }
}

template <tensor::Type kType>
__global__ void __launch_bounds__(kThreads) RopeWriteKvKernel(const RopeTask task) {
  FollowEarlierLaunches();
  const RopeWriteKvParams& p = task.params;
  const KvPages& pages = p.pages;
  SharedArena arena;
  const SharedArray<float> cosines = arena.Take<float>(p.rotary_dims / 2);
  const SharedArray<float> sines = arena.Take<float>(p.rotary_dims / 2);
  const size_t token = blockIdx.x;
  for (uint32_t i = threadIdx.x; i < p.rotary_dims / 2; i += kThreads) {
    const Rotation rotation = RotationOf(p.positions[token], p.inv_freq[i], p.magnitude);
    cosines[i] = rotation.cosine;
    sines[i] = rotation.sine;
  }
  __syncthreads();
  const uint32_t row = task.first_row + blockIdx.y * kWarps + threadIdx.x / kWarp;
  if (row >= task.rows) return;
  if (row < p.heads) {
    const size_t at = (token * p.heads + row) * pages.head_dim;
    Normalize(task.norms.q, at, pages.head_dim);
    RotateHead(p.q + at, p, cosines, sines);
    return Scale(p.q + at, p, QueryTemperature(p, p.positions[token]));
  }

  const bool is_k = row < p.heads + pages.kv_heads;
  const uint32_t head = row - p.heads - (is_k ? 0 : pages.kv_heads);
  const uint32_t dim = is_k ? pages.head_dim : pages.value_dim;
  const size_t at = (token * pages.kv_heads + head) * dim;
  if (is_k) {
    Normalize(task.norms.k, at, dim);
    RotateHead(p.k + at, p, cosines, sines);
    Scale(p.k + at, p, 1.0f);
  } else {
    Normalize(task.norms.v, at, dim);
  }
  const int32_t slot = p.slots[token];
  if (slot < 0) return;
  StoreRow<kType>((is_k ? p.k : p.v) + at, dim, is_k ? pages.k : pages.v,
                  PageRow(pages, slot) + size_t{head} * pages.block_size);
}

void (*KernelFor(tensor::Type type))(RopeTask) {
  switch (type) {
    case tensor::Type::kF32:
      return &RopeWriteKvKernel<tensor::Type::kF32>;
    case tensor::Type::kF16:
      return &RopeWriteKvKernel<tensor::Type::kF16>;
    case tensor::Type::kBF16:
      return &RopeWriteKvKernel<tensor::Type::kBF16>;
    case tensor::Type::kQ8_0:
      return &RopeWriteKvKernel<tensor::Type::kQ8_0>;
    default:
      TANDEM_CHECK(false) << "KV pages of type " << tensor::Name(type);
      return nullptr;
  }
}

}  // namespace

HeadNorm HeadNormOf(const NormParams& norm, const float* heads, uint32_t rows, uint32_t dim) {
  const auto* const rms = std::get_if<RmsNormParams>(&norm);
  if (rms == nullptr || rms->residual != heads || rms->out != heads) return {};
  if (rms->rows != rows || rms->dim != dim || dim % 4 != 0 || dim > kMaxNormOfWarp) return {};
  const bool plain = rms->add == nullptr && rms->gate == nullptr && rms->sum_squares == nullptr;
  if (!plain || (rms->out_stride != 0 && rms->out_stride != dim)) return {};
  return {rms->out, rms->weight, rms->epsilon};
}

void EncodeRopeWriteKv(Stream& stream, const RopeWriteKvParams& params, const HeadNorms& norms) {
  const KvPages& pages = params.pages;
  const bool keeps_q = params.rotary_dims == 0 && params.temperature_scale == 0.0f &&
                       params.norm_epsilon == 0.0f && norms.q.heads == nullptr;
  const RopeTask task = {.params = params,
                         .norms = norms,
                         .first_row = keeps_q ? params.heads : 0,
                         .rows = params.heads + pages.kv_heads * (pages.latent ? 1 : 2)};
  const dim3 grid(params.tokens, Blocks(task.rows - task.first_row, kWarps));
  stream.LaunchEarly("rope_write_kv", KernelFor(pages.type), grid, kThreads,
                     2 * SharedBytes<float>(params.rotary_dims / 2), task);
}

void EncodeOp(Stream& stream, const RopeWriteKvParams& params) {
  EncodeRopeWriteKv(stream, params, {});
}

}  // namespace tandem::kernels::cuda
