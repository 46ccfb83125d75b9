// Attention on tensor cores, for 16-bit or Q8_0 pages: queries and weights are rounded to 16 bits;
// scores, softmax state and accumulators are floats.
//
// Per tile of positions: K and V arrive in shared memory by cp.async (kv_tiles.h); S = Q K^T
// (ldmatrix, mma); scale, soft-cap and mask; online-softmax update, which rescales the
// accumulators; O += P V (ldmatrix, mma). At the end of a piece the result joins those of the
// pieces before it (partials.h).
//
// A block has kRowWarps x kColumnWarps warps. A row warp owns 16 query rows. Its column warps share
// the tile's positions in Q K^T and the columns of V in P V; P goes through shared memory, or stays
// in registers if there is one column warp: the accumulators of one mma are laid out as the A
// fragments of the next.
//
// Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao,
// "FlashAttention-2", 2023; Dao et al., "Flash-Decoding for long-context inference", 2023.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_TENSOR_CORE_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_TENSOR_CORE_H_

#include "kernels/cuda/attention/attend.h"
#include "kernels/cuda/device/load_matrix.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

// Of prompts: row warps of a block, which share K and V, and positions of a piece.
inline constexpr uint32_t kPromptWarps = 8;
inline constexpr uint32_t kPromptPiece = 2048;

// kValueTiles: tiles of 8 columns of V accumulated by a warp.
template <typename PageT, uint32_t kRowWarpsT, uint32_t kColumnWarpsT, uint32_t kPositionsT,
          uint32_t kValueTilesT>
struct TensorConfig {
  using Page = PageT;
  static constexpr uint32_t kRowWarps = kRowWarpsT;
  static constexpr uint32_t kColumnWarps = kColumnWarpsT;
  static constexpr uint32_t kPositions = kPositionsT;
  static constexpr uint32_t kValueTiles = kValueTilesT;
  static constexpr uint32_t kThreads = 32 * kRowWarps * kColumnWarps;
  static constexpr uint32_t kRows = 16 * kRowWarps;
  static constexpr uint32_t kScoreTiles = kPositions / 8 / kColumnWarps;
  static constexpr uint32_t kWeightStride = kPositions + 8;
  // What column warps exchange, if there are several.
  static constexpr uint32_t kWeights = kColumnWarps > 1 ? kRows* kWeightStride : 0;
  static constexpr uint32_t kExchanged = kColumnWarps > 1 ? kRows* kColumnWarps : 0;
  // A piece's result is written and read again by its merge. So that this is little beside K and
  // V, pieces grow with the width of values, and with the rows.
  static constexpr uint32_t kValues = kValueTiles * 8 * kColumnWarps;
  static constexpr uint32_t kPiece = kRows > 32 ? kPromptPiece : kValues > 128 ? kValues : 128;
  // As many as 65,536 registers are enough for.
  static constexpr uint32_t kBlocks = kThreads * (kValueTiles > 4 ? 256 : 128) > 32768 ? 1 : 2;
  static constexpr AttentionTile kTile = {kRows, kPositions, kPiece, kBlocks};
  // Blocks with a warp per row tile keep its queries as fragments for all tiles of positions.
  static constexpr bool kHoldsQueries = kColumnWarps == 1;
  // Of a row of K, where the widths of K and of V are bounded alike.
  static constexpr uint32_t kMostChunks = kValues <= 256 ? kValues / 8 : 0;
  using Tiles = typename Page::template Tiles<kPositions, kThreads, kMostChunks>;
  static_assert(kPositions % 32 == 0 && kScoreTiles >= 1 && kPositions <= kThreads);
  static_assert(!kHoldsQueries || kMostChunks > 0);

  static size_t SharedBytesOf(const AttentionArgs& a) {
    return WorkList::kSharedBytes + SharedBytes<Assignment>(1) + kRows * a.k.stride() * 16 +
           SharedBytes<uint16_t>(kWeights) + SharedBytes<float>(kExchanged) +
           Tiles::SharedBytesOf(a);
  }
};

template <typename C>
class TensorAttention {
 public:
  __device__ TensorAttention(const AttentionArgs& a, SharedArray<Assignment> current,
                             SharedArena& arena)
      : a_(a),
        current_(current),
        column_warp_(threadIdx.x / kWarp % C::kColumnWarps),
        row_base_(threadIdx.x / kWarp / C::kColumnWarps * 16),
        lane_(threadIdx.x % kWarp),
        q_(arena.Take<uint4>(C::kRows * a.k.stride()).template As<uint16_t>()),
        p_(arena.Take<uint16_t>(C::kWeights)),
        exchange_(arena.Take<float>(C::kExchanged)) {}

  // Begins with a row tile: copies its rounded queries to shared memory; a barrier must follow.
  __device__ void Begin() {
    const Assignment now = current_[0];
    LoadQueries(now.tile);
    if constexpr (C::kHoldsQueries) {
      __syncthreads();
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i) {
        if (i * 4 < a_.k.chunks) LoadQueryFragments(i * 32, held_[i]);
      }
    }
  }

  // One tile of K and V: positions from `position` on.
  __device__ void AddTile(SharedArray<uint4> k, SharedArray<uint4> v, int32_t position) {
    float s[C::kScoreTiles][4] = {};
    ComputeScores(k.template As<uint16_t>(), s);
    CapAndMask(s, position);
    uint32_t p_fragments[C::kScoreTiles][2];
    UpdateSoftmax(s, p_fragments);
    AccumulateValues(p_fragments, v.template As<uint16_t>());
  }

  // Adds up the weights of a row's lanes and warps.
  __device__ void SumWeights() {
    for (uint32_t half = 0; half < 2; ++half) {
      state_[half].sum += __shfl_xor_sync(kAllLanes, state_[half].sum, 1);
      state_[half].sum += __shfl_xor_sync(kAllLanes, state_[half].sum, 2);
    }
    if (C::kColumnWarps > 1) {
      __syncthreads();
      WriteExchange(state_[0].sum, state_[1].sum);
      __syncthreads();
      for (uint32_t half = 0; half < 2; ++half) state_[half].sum = ReduceExchange(half, AddOp());
    }
  }
  // Merges with the node to the left.
  __device__ void Merge(uint32_t slot) {
    ForMyRows([&](const RowTile&, uint32_t half, uint32_t row) {
      const PartialRow left(a_, slot, row);
      const MergeFactors factors = MergeStates(left.state(), state_[half]);
      ForMyPairs(half, [&](uint32_t column, float& first, float& second) {
        const float2 sums = left.two(column);
        first = factors.Sum(sums.x, first);
        second = factors.Sum(sums.y, second);
      });
    });
  }
  __device__ void Store(uint32_t slot) {
    ForMyRows([&](const RowTile&, uint32_t half, uint32_t row) {
      const PartialRow out(a_, slot, row);
      ForMyPairs(half, [&](uint32_t column, float first, float second) {
        out.WriteTwo(column, make_float2(first, second));
      });
      if (column_warp_ == 0 && lane_ % 4 == 0) out.WriteState(state_[half]);
    });
  }
  __device__ void WriteOutput() {
    ForMyRows([&](const RowTile& tile, uint32_t half, uint32_t row) {
      const RowOut out(a_, tile, row, state_[half]);
      ForMyPairs(half, [&](uint32_t column, float first, float second) {
        out.Write(column, first);
        if (column + 1 < a_.p.pages.value_dim) out.Write(column + 1, second);
      });
    });
  }
  __device__ void Clear() {
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) state_[half] = {};
#pragma unroll
    for (uint32_t j = 0; j < C::kValueTiles; ++j) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) acc_[j][i] = 0;
    }
  }

 private:
  // A thread has the same chunks of every kRowStep-th row; its loads do not wait for each other.
  __device__ void LoadQueries(const RowTile& tile) const {
    constexpr uint32_t kRowLanes = 16, kRowStep = C::kThreads / kRowLanes;
    static_assert(C::kRows % kRowStep == 0);
    const SharedArray<uint4> q = q_.template As<uint4>();
    const uint32_t dim = a_.p.pages.head_dim;
#pragma unroll
    for (uint32_t i = 0; i < C::kRows / kRowStep; ++i) {
      const uint32_t row = threadIdx.x / kRowLanes + i * kRowStep;
      const bool real = row < tile.rows;
      const size_t at =
          real ? static_cast<size_t>(tile.Token(row)) * a_.p.heads + tile.Head(row) : 0;
      for (uint32_t chunk = threadIdx.x % kRowLanes; chunk < a_.k.chunks; chunk += kRowLanes) {
        const float* const values = a_.p.q + at * dim + chunk * 8;
        const uint2 low = RoundedQueries(values, real && chunk * 8 < dim, dim - chunk * 8);
        const uint2 high =
            RoundedQueries(values + 4, real && chunk * 8 + 4 < dim, dim - chunk * 8 - 4);
        q[row * a_.k.stride() + chunk] = make_uint4(low.x, low.y, high.x, high.y);
      }
    }
  }
  // Four values of a query, of which `left` are its own, or zeros.
  __device__ uint2 RoundedQueries(const float* values, bool some, uint32_t left) const {
    float4 four = {0, 0, 0, 0};
    if (some && a_.wide_queries) {
      four = *reinterpret_cast<const float4*>(values);
    } else if (some) {
      four = {values[0], left > 1 ? values[1] : 0, left > 2 ? values[2] : 0,
              left > 3 ? values[3] : 0};
    }
    return {Pack(C::Page::Round(four.x), C::Page::Round(four.y)),
            Pack(C::Page::Round(four.z), C::Page::Round(four.w))};
  }

  __device__ uint32_t Row(uint32_t half) const { return row_base_ + lane_ / 4 + half * 8; }
  __device__ uint32_t Column(uint32_t j) const { return (j * C::kColumnWarps + column_warp_) * 8; }

  // use(row tile, half, row), for the rows of this lane that the tile has.
  template <typename Use>
  __device__ void ForMyRows(Use use) {
    const Assignment now = current_[0];
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      if (Row(half) < now.tile.rows) use(now.tile, half, Row(half));
    }
  }
  // use(even column of V, its sum, the next one's), for the sums of one of this lane's rows.
  template <typename Use>
  __device__ void ForMyPairs(uint32_t half, Use use) {
#pragma unroll
    for (uint32_t j = 0; j < C::kValueTiles; ++j) {
      const uint32_t column = Column(j) + lane_ % 4 * 2;
      if (column < a_.p.pages.value_dim) use(column, acc_[j][half * 2], acc_[j][half * 2 + 1]);
    }
  }

  // Columns [d, d + 32) of this warp's queries.
  __device__ void LoadQueryFragments(uint32_t d, uint32_t (&q)[2][4]) const {
    const uint32_t at = (row_base_ + lane_ % 16) * a_.k.stride() * 8 + lane_ / 16 * 8 + d;
    LoadMatrices(q[0], q_, at);
    LoadMatrices(q[1], q_, at + 16);
  }

  // S = Q K^T for this warp's rows and positions: ldmatrix loads fragments, mma multiplies them.
  __device__ void ComputeScores(SharedArray<uint16_t> k, float (&s)[C::kScoreTiles][4]) const {
    const uint32_t stride = a_.k.stride() * 8;
    const uint32_t k_at = (column_warp_ * C::kScoreTiles * 8 + lane_ % 8) * stride + lane_ / 8 * 8;
    // An mma waits for the one before it that has the same sums: a warp with few of them has two
    // each.
    constexpr bool kTwoSums = C::kScoreTiles <= 2;
    constexpr uint32_t kOthers = kTwoSums ? C::kScoreTiles : 1;
    float others[kOthers][4] = {};
    const auto step = [&](uint32_t d, const uint32_t(&q)[2][4]) {
#pragma unroll
      for (uint32_t t = 0; t < C::kScoreTiles; ++t) {
        uint32_t b[4];
        LoadMatrices(b, k, k_at + t * 8 * stride + d);
        C::Page::Mma(s[t], q[0], {b[0], b[1]});
        C::Page::Mma(kTwoSums ? others[t % kOthers] : s[t], q[1], {b[2], b[3]});
      }
    };
    if constexpr (C::kHoldsQueries) {
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i) {
        if (i * 4 < a_.k.chunks) step(i * 32, held_[i]);
      }
    } else {
      const auto load_and_step = [&](uint32_t d) {
        uint32_t q[2][4];
        LoadQueryFragments(d, q);
        step(d, q);
      };
      if (C::kMostChunks > 0 && a_.k.chunks == C::kMostChunks) {
        // Without branches fragments of the next columns load while these are multiplied.
#pragma unroll
        for (uint32_t d = 0; d != C::kMostChunks * 8; d += 32) load_and_step(d);
      } else {
#pragma unroll 1
        for (uint32_t d = 0; d < a_.k.chunks * 8; d += 32) load_and_step(d);
      }
    }
    if constexpr (kTwoSums) {
#pragma unroll
      for (uint32_t t = 0; t < C::kScoreTiles; ++t) {
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) s[t][i] += others[t][i];
      }
    }
  }

  // Soft-cap and mask: -inf if a row does not attend to a position.
  __device__ void CapAndMask(float (&s)[C::kScoreTiles][4], int32_t position) const {
    if (a_.p.softcap != 0) {
#pragma unroll
      for (uint32_t t = 0; t < C::kScoreTiles; ++t) {
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) s[t][i] = Cap(a_, s[t][i]);
      }
    }
    const Assignment now = current_[0];
    if (position >= now.all_visible.begin &&
        position + static_cast<int32_t>(C::kPositions) <= now.all_visible.end)
      return;
    const RowRange visible[2] = {VisibleRange(a_, now.tile, Row(0)),
                                 VisibleRange(a_, now.tile, Row(1))};
    const auto first =
        position + static_cast<int32_t>(column_warp_ * C::kScoreTiles * 8 + lane_ % 4 * 2);
#pragma unroll
    for (uint32_t t = 0; t < C::kScoreTiles; ++t) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const int32_t at = first + static_cast<int32_t>(t * 8 + i % 2);
        const RowRange& range = visible[i / 2];
        if (at < range.begin || at >= range.end) s[t][i] = kNegInf;
      }
    }
  }

  // Online-softmax update: S becomes P = 2^(score - max), and the accumulators of earlier tiles are
  // rescaled to the new maximum. P is rounded to 16 bits, as A fragments of the product with V.
  __device__ void UpdateSoftmax(float (&s)[C::kScoreTiles][4],
                                uint32_t (&p_fragments)[C::kScoreTiles][2]) {
    float largest[2] = {kNegInf, kNegInf};
#pragma unroll
    for (uint32_t t = 0; t < C::kScoreTiles; ++t) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) largest[i / 2] = max(largest[i / 2], s[t][i]);
    }
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      largest[half] = max(largest[half], __shfl_xor_sync(kAllLanes, largest[half], 1));
      largest[half] = max(largest[half], __shfl_xor_sync(kAllLanes, largest[half], 2));
    }
    if (C::kColumnWarps > 1) {
      WriteExchange(largest[0], largest[1]);
      __syncthreads();
      for (uint32_t half = 0; half < 2; ++half) largest[half] = ReduceExchange(half, MaxOp());
    }
    const float factor = a_.score_factor;
    float rescale[2], base[2];
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      rescale[half] = state_[half].UpdateMax(largest[half] * factor);
      base[half] = state_[half].base();
    }
#pragma unroll
    for (uint32_t t = 0; t < C::kScoreTiles; ++t) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        s[t][i] = FastExp2(fmaf(s[t][i], factor, -base[i / 2]));
        state_[i / 2].sum += s[t][i];
      }
      p_fragments[t][0] = Pack(C::Page::Round(s[t][0]), C::Page::Round(s[t][1]));
      p_fragments[t][1] = Pack(C::Page::Round(s[t][2]), C::Page::Round(s[t][3]));
    }
#pragma unroll
    for (uint32_t j = 0; j < C::kValueTiles; ++j) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) acc_[j][i] *= rescale[i / 2];
    }
  }

  // O += P V. P goes through shared memory if other warps hold its columns.
  __device__ void AccumulateValues(const uint32_t (&p_fragments)[C::kScoreTiles][2],
                                   SharedArray<uint16_t> v) {
    if (C::kColumnWarps > 1) {
      const SharedArray<uint32_t> pairs = p_.template As<uint32_t>();
#pragma unroll
      for (uint32_t t = 0; t < C::kScoreTiles; ++t) {
        const uint32_t at = (column_warp_ * C::kScoreTiles + t) * 8 + lane_ % 4 * 2;
        for (uint32_t half = 0; half < 2; ++half) {
          pairs[(Row(half) * C::kWeightStride + at) / 2] = p_fragments[t][half];
        }
      }
      __syncthreads();
    }
    const uint32_t stride = a_.v.stride() * 8, columns = (a_.p.pages.value_dim + 7) / 8 * 8;
#pragma unroll
    for (uint32_t at = 0; at < C::kPositions; at += 32) {
      uint32_t w0[4], w1[4];
      if constexpr (C::kColumnWarps > 1) {
        const uint32_t w_at = (row_base_ + lane_ % 16) * C::kWeightStride + at + lane_ / 16 * 8;
        LoadMatrices(w0, p_, w_at);
        LoadMatrices(w1, p_, w_at + 16);
      } else {
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
          w0[i] = p_fragments[at / 8 + i / 2][i % 2];
          w1[i] = p_fragments[at / 8 + 2 + i / 2][i % 2];
        }
      }
#pragma unroll
      for (uint32_t j = 0; j < C::kValueTiles; ++j) {
        if (Column(j) >= columns) continue;
        uint32_t b[4];
        LoadMatricesTransposed(b, v, (at + lane_) * stride + Column(j));
        C::Page::Mma(acc_[j], w0, {b[0], b[1]});
        C::Page::Mma(acc_[j], w1, {b[2], b[3]});
      }
    }
  }

  // Cross-warp exchange: a value per row from each column warp, then, after a barrier, their
  // maximum or sum.
  __device__ void WriteExchange(float first, float second) const {
    if (lane_ % 4 != 0) return;
    exchange_[Row(0) * C::kColumnWarps + column_warp_] = first;
    exchange_[Row(1) * C::kColumnWarps + column_warp_] = second;
  }
  template <typename Op>
  __device__ float ReduceExchange(uint32_t half, Op op) const {
    float value = exchange_[Row(half) * C::kColumnWarps];
    for (uint32_t i = 1; i < C::kColumnWarps; ++i) {
      value = op(value, static_cast<float>(exchange_[Row(half) * C::kColumnWarps + i]));
    }
    return value;
  }

  const AttentionArgs& a_;
  const SharedArray<Assignment> current_;
  const uint32_t column_warp_;
  const uint32_t row_base_;
  const uint32_t lane_;
  const SharedArray<uint16_t> q_;
  const SharedArray<uint16_t> p_;
  const SharedArray<float> exchange_;
  static constexpr uint32_t kSteps = C::kHoldsQueries ? C::kMostChunks / 4 : 1;
  uint32_t held_[kSteps][2][4];  // fragments of 32 columns of queries
  SoftmaxState state_[2];
  float acc_[C::kValueTiles][4] = {};
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_TENSOR_CORE_H_
