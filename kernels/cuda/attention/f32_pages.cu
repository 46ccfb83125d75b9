// Attention over F32 pages, computed in float. A warp owns up to four query rows; its lanes divide
// the positions of a tile in Q K^T and the columns of V in P V.
//
// Floor: as tensor_launch.h, with rows of floats.
#include "kernels/cuda/attention/attend.h"
#include "kernels/cuda/attention/kv_tiles.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kWarps = 4;
constexpr uint32_t kThreads = kWarps * kWarp;
constexpr uint32_t kWarpRows = 4;
constexpr uint32_t kRows = kWarps * kWarpRows;
constexpr uint32_t kPositions = kWarp;
constexpr AttentionTile kTile = {kRows, kPositions, /*piece_positions=*/128};

struct F32Page {
  static constexpr uint32_t kChunkValues = 4;

  __device__ static uint4 Chunk(const std::byte* row, uint32_t chunk, uint32_t dim) {
    const auto* const words = reinterpret_cast<const uint32_t*>(row) + chunk * 4;
    const uint32_t left = dim - chunk * 4;
    return make_uint4(words[0], left > 1 ? words[1] : 0, left > 2 ? words[2] : 0,
                      left > 3 ? words[3] : 0);
  }
};

using FloatTiles = KvTiles<F32Page, kPositions, kThreads, /*kMostChunks=*/0>;

__device__ inline float Dot(float4 a, float4 b, float sum) {
  sum += a.x * b.x;
  sum += a.y * b.y;
  sum += a.z * b.z;
  return sum + a.w * b.w;
}

// kColumns: columns of V accumulated by a lane, 32 apart.
template <uint32_t kColumns>
class FloatAttention {
 public:
  __device__ FloatAttention(const AttentionArgs& a, SharedArray<Assignment> current,
                            SharedArena& arena)
      : a_(a),
        current_(current),
        warp_(threadIdx.x / kWarp),
        lane_(threadIdx.x % kWarp),
        q_(arena.Take<float4>(kRows * a.k.chunks)),
        weights_(arena.Take<float4>(kPositions * kWarps)) {}

  // Begins with a row tile: copies its queries to shared memory; a barrier must follow.
  __device__ void Begin() {
    const Assignment now = current_[0];
    const RowTile& tile = now.tile;
    count_ = warp_ < tile.rows ? (tile.rows - warp_ - 1) / kWarps + 1 : 0;
    for (uint32_t r = 0; r < kWarpRows; ++r) visible_[r] = VisibleRange(a_, tile, Row(r));
    const uint32_t dim = a_.p.pages.head_dim;
    const SharedArray<float> q = q_.template As<float>();
    for (uint32_t row = warp_; row < tile.rows; row += kWarps) {
      const size_t at = static_cast<size_t>(tile.Token(row)) * a_.p.heads + tile.Head(row);
      for (uint32_t d = lane_; d < a_.k.chunks * 4; d += kWarp) {
        q[row * a_.k.chunks * 4 + d] = d < dim ? a_.p.q[at * dim + d] : 0.0f;
      }
    }
  }

  __device__ void AddTile(SharedArray<uint4> keys, SharedArray<uint4> values, int32_t position) {
    const SharedArray<float4> k = keys.template As<float4>();
    float s[kWarpRows] = {};
    for (uint32_t chunk = 0; chunk < a_.k.chunks; ++chunk) {
      const float4 key = k[lane_ * a_.k.stride() + chunk];
#pragma unroll
      for (uint32_t r = 0; r < kWarpRows; ++r) {
        if (r < count_) s[r] = Dot(q_[Row(r) * a_.k.chunks + chunk], key, s[r]);
      }
    }
    UpdateSoftmax(s, position + static_cast<int32_t>(lane_));
    AccumulateValues(values.template As<float>());
  }

  __device__ void SumWeights() {
#pragma unroll
    for (uint32_t r = 0; r < kWarpRows; ++r) state_[r].sum = WarpSum(state_[r].sum);
  }
  // Merges with the node to the left.
  __device__ void Merge(uint32_t slot) {
    ForMyRows([&](uint32_t r) {
      const PartialRow left(a_, slot, Row(r));
      const MergeFactors factors = MergeStates(left.state(), state_[r]);
      ForMyColumns(
          r, [&](uint32_t column, float& sum) { sum = factors.Sum(left.value(column), sum); });
    });
  }
  __device__ void Store(uint32_t slot) {
    ForMyRows([&](uint32_t r) {
      const PartialRow out(a_, slot, Row(r));
      ForMyColumns(r, [&](uint32_t column, float sum) { out.Write(column, sum); });
      if (lane_ == 0) out.WriteState(state_[r]);
    });
  }
  __device__ void WriteOutput() {
    const Assignment now = current_[0];
    ForMyRows([&](uint32_t r) {
      const RowOut out(a_, now.tile, Row(r), state_[r]);
      ForMyColumns(r, [&](uint32_t column, float sum) { out.Write(column, sum); });
    });
  }
  __device__ void Clear() {
#pragma unroll
    for (uint32_t r = 0; r < kWarpRows; ++r) {
      state_[r] = {};
#pragma unroll
      for (uint32_t j = 0; j < kColumns; ++j) acc_[j][r] = 0;
    }
  }

 private:
  // Row `r` of the warp's count_ rows.
  __device__ uint32_t Row(uint32_t r) const { return r * kWarps + warp_; }

  template <typename Use>
  __device__ void ForMyRows(Use use) const {
#pragma unroll
    for (uint32_t r = 0; r < kWarpRows; ++r) {
      if (r < count_) use(r);
    }
  }
  // use(column of V, sum), for the sums of one of the warp's rows.
  template <typename Use>
  __device__ void ForMyColumns(uint32_t r, Use use) {
#pragma unroll
    for (uint32_t j = 0; j < kColumns; ++j) {
      const uint32_t column = j * kWarp + lane_;
      if (column < a_.p.pages.value_dim) use(column, acc_[j][r]);
    }
  }

  // Scale, soft-cap, mask and online-softmax update: the scores of the lane's position become
  // weights in shared memory, and the accumulators are rescaled.
  __device__ void UpdateSoftmax(float (&s)[kWarpRows], int32_t position) {
#pragma unroll
    for (uint32_t r = 0; r < kWarpRows; ++r) {
      if (r >= count_) continue;
      const bool visible = position >= visible_[r].begin && position < visible_[r].end;
      const float cap = a_.p.softcap;
      const float capped = cap == 0 ? s[r] : cap * tanhf(s[r] * a_.cap_ratio);
      s[r] = visible ? capped * a_.score_factor : kNegInf;
      const float rescale = state_[r].UpdateMax(WarpMax(s[r]));
      s[r] = exp2f(s[r] - state_[r].base());
      state_[r].sum += s[r];
#pragma unroll
      for (uint32_t j = 0; j < kColumns; ++j) acc_[j][r] *= rescale;
    }
    __syncwarp();  // the previous tile's weights have been read
    weights_[warp_ * kPositions + lane_] = make_float4(s[0], s[1], s[2], s[3]);
    __syncwarp();
  }

  __device__ void AccumulateValues(SharedArray<float> v) {
    const uint32_t columns = a_.p.pages.value_dim, stride = a_.v.stride() * 4;
    for (uint32_t at = 0; at < kPositions; ++at) {
      const float4 weight = weights_[warp_ * kPositions + at];
#pragma unroll
      for (uint32_t j = 0; j < kColumns; ++j) {
        const uint32_t column = j * kWarp + lane_;
        if (column >= columns) continue;
        const float value = v[at * stride + column];
        acc_[j][0] += weight.x * value;
        if (count_ > 1) acc_[j][1] += weight.y * value;
        if (count_ > 2) acc_[j][2] += weight.z * value;
        if (count_ > 3) acc_[j][3] += weight.w * value;
      }
    }
  }

  const AttentionArgs& a_;
  const SharedArray<Assignment> current_;
  const uint32_t warp_;
  const uint32_t lane_;
  uint32_t count_ = 0;  // rows of this warp
  const SharedArray<float4> q_;
  const SharedArray<float4> weights_;  // per warp and position: weights of its four rows
  RowRange visible_[kWarpRows];
  SoftmaxState state_[kWarpRows];
  float acc_[kColumns][kWarpRows] = {};
};

template <uint32_t kColumns>
__global__ void __launch_bounds__(kThreads, 1) FloatAttentionKernel(const AttentionArgs a) {
  FollowEarlierLaunches();
  SharedArena arena;
  const WorkList list(a, arena);
  const SharedArray<Assignment> current = arena.Take<Assignment>(1);
  FloatAttention<kColumns> attention(a, current, arena);
  FloatTiles tiles(a, current, arena);
  AttendToShare(a, list, current, attention, tiles);
}

size_t SharedBytesOf(const AttentionArgs& args) {
  return WorkList::kSharedBytes + SharedBytes<Assignment>(1) +
         SharedBytes<float4>(kRows * args.k.chunks) + SharedBytes<float4>(kPositions * kWarps) +
         FloatTiles::SharedBytesOf(args);
}

template <uint32_t kColumns>
void LaunchFloatAttention(Stream& stream, AttentionArgs& args) {
  args.rows = kAllRows;
  const size_t shared = SharedBytesOf(args);
  if (!PlanAttention(stream, kTile, shared, args)) return;
  stream.LaunchEarly("attention", &FloatAttentionKernel<kColumns>, args.shares, kThreads, shared,
                     args);
  EncodeAttentionMerge(stream, args);
}

}  // namespace

void EncodeF32Attention(Stream& stream, AttentionArgs& args) {
  const uint32_t values = args.p.pages.value_dim;
  args.stages = 2;
  if (SharedBytesOf(args) > stream.most_shared_bytes()) args.stages = 1;
  const size_t shared = SharedBytesOf(args);
  if (shared > stream.most_shared_bytes()) return RefuseAttention(stream, args, shared);
  if (values <= 128) return LaunchFloatAttention<4>(stream, args);
  if (values <= 256) return LaunchFloatAttention<8>(stream, args);
  LaunchFloatAttention<16>(stream, args);
}

}  // namespace tandem::kernels::cuda
