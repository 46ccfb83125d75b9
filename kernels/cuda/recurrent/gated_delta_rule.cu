// Source: Yang, Kautz and Hatamizadeh, "Gated delta networks: improving Mamba2 with delta rule",
// 2024.
//
// A block has kColumns columns of a head's state, of one sequence, in shared memory for the whole
// chunk, and works through it token by token; columns do not depend on each other. Lane i of every
// warp has column i, and each warp sums every kWarps-th row.
// Floor: reads and writes the state once per chunk, 8 bytes per value.
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kColumns = kWarp;
constexpr uint32_t kWarps = 4;
constexpr uint32_t kThreads = kWarps * kWarp;

// The block's arrays.
struct Room {
  SharedArray<float> cells;    // (dim, kColumns)
  SharedArray<float> q;        // (dim)
  SharedArray<float> k;        // (dim)
  SharedArray<float> partial;  // (2, kWarps, kColumns): of what the state predicts, of the output
};

size_t RoomBytes(uint32_t dim) {
  return SharedBytes<float>(dim * kColumns) + 2 * SharedBytes<float>(dim) +
         SharedBytes<float>(2 * kWarps * kColumns);
}

// Of a whole warp.
__device__ void Normalize(const float* x, uint32_t dim, float epsilon, float scale,
                          SharedArray<float> to) {
  float squares = 0;
  for (uint32_t i = threadIdx.x % kWarp; i < dim; i += kWarp) squares += x[i] * x[i];
  const float factor = scale / sqrtf(WarpSum(squares) + epsilon);
  for (uint32_t i = threadIdx.x % kWarp; i < dim; i += kWarp) to[i] = x[i] * factor;
}

__device__ float SumOfWarps(SharedArray<float> partial, uint32_t part, uint32_t lane) {
  float sum = 0;
  for (uint32_t warp = 0; warp < kWarps; ++warp) {
    sum += partial[(part * kWarps + warp) * kColumns + lane];
  }
  return sum;
}

__device__ float Decay(const GatedDeltaRuleParams& p, size_t at, uint32_t head) {
  const float x = p.decay[at] + p.decay_bias[head];
  const float softplus = x > 20.0f ? x : log1pf(expf(x));
  return expf(p.decay_rate[head] * softplus);
}

__device__ void RunToken(const GatedDeltaRuleParams& p, const Room& room, size_t row, uint32_t head,
                         uint32_t column) {
  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const uint32_t key_head = p.strided ? head % p.key_heads : head / (p.value_heads / p.key_heads);
  const float* const qkv = p.qkv + row * p.channels();
  if (warp == 0) {
    Normalize(qkv + key_head * p.dim, p.dim, p.epsilon, 1.0f / sqrtf(static_cast<float>(p.dim)),
              room.q);
  } else if (warp == 1) {
    Normalize(qkv + (p.key_heads + key_head) * p.dim, p.dim, p.epsilon, 1.0f, room.k);
  }
  const size_t at = row * p.value_heads + head;
  const float decay = Decay(p, at, head);
  const float write = 1.0f / (1.0f + expf(-p.write[at]));
  const bool inside = column < p.dim;
  const float v = inside ? qkv[(2 * p.key_heads + head) * p.dim + column] : 0.0f;
  __syncthreads();

  float sum = 0;
  for (uint32_t i = warp; i < p.dim; i += kWarps) {
    sum += room.k[i] * room.cells[i * kColumns + lane];
  }
  room.partial[warp * kColumns + lane] = sum;
  __syncthreads();

  const float delta = write * (v - decay * SumOfWarps(room.partial, 0, lane));
  sum = 0;
  for (uint32_t i = warp; i < p.dim; i += kWarps) {
    const float cell = decay * room.cells[i * kColumns + lane] + room.k[i] * delta;
    room.cells[i * kColumns + lane] = cell;
    sum += room.q[i] * cell;
  }
  room.partial[(kWarps + warp) * kColumns + lane] = sum;
  __syncthreads();

  if (warp == 0 && inside) p.out[at * p.dim + column] = SumOfWarps(room.partial, 1, lane);
}

__global__ void __launch_bounds__(kThreads) GatedDeltaRuleKernel(const GatedDeltaRuleParams p) {
  SharedArena arena;
  const SharedArray<float> cells = arena.Take<float>(p.dim * kColumns);
  const SharedArray<float> q = arena.Take<float>(p.dim);
  const SharedArray<float> k = arena.Take<float>(p.dim);
  const Room room = {cells, q, k, arena.Take<float>(2 * kWarps * kColumns)};
  const uint32_t head = blockIdx.x, seq = blockIdx.z;
  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const uint32_t column = blockIdx.y * kColumns + lane;
  const bool inside = column < p.dim;
  const int32_t begin = p.batch.query_offsets[seq], end = p.batch.query_offsets[seq + 1];
  const int32_t context_len = p.batch.context_lens[seq];
  const auto state_of = [&](const int32_t* slots) {
    const size_t matrix = static_cast<size_t>(slots[seq]) * p.value_heads + head;
    return p.state + matrix * p.dim * p.dim + column;
  };
  const auto save = [&](float* to) {
    for (uint32_t i = warp; inside && i < p.dim; i += kWarps) {
      to[i * size_t{p.dim}] = room.cells[i * kColumns + lane];
    }
  };
  const bool fresh = context_len == end - begin;
  if (context_len == 0) {
    for (int32_t row = begin; warp == 0 && inside && row < end; ++row) {
      p.out[(static_cast<size_t>(row) * p.value_heads + head) * p.dim + column] = 0.0f;
    }
    return;
  }
  const float* const loaded = state_of(p.batch.load_slots);
  for (uint32_t i = warp; i < p.dim; i += kWarps) {
    room.cells[i * kColumns + lane] = inside && !fresh ? loaded[i * size_t{p.dim}] : 0.0f;
  }
  const int32_t save_after = p.batch.save_after[seq];
  for (int32_t row = begin; row < end; ++row) {
    RunToken(p, room, row, head, column);
    if (row + 1 - begin == save_after) save(state_of(p.batch.save_slots));
  }
  save(state_of(p.batch.slots));
}

}  // namespace

void EncodeOp(Stream& stream, const GatedDeltaRuleParams& params) {
  stream.Launch("gated_delta_rule", &GatedDeltaRuleKernel,
                dim3(params.value_heads, Blocks(params.dim, kColumns), params.batch.num_seqs),
                kThreads, RoomBytes(params.dim), params);
}

}  // namespace tandem::kernels::cuda
