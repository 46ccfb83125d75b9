// The causal short convolution. A thread computes one channel of one token; a second kernel, which
// begins when all have read the states, writes them.
// Floor: reads x and writes out once, 8 bytes per value, and reads and writes the state.
#include "common/base/check.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 256;

// The sequence of a row: the last that does not begin after it.
__device__ uint32_t SequenceOf(const RecurrentBatch& batch, uint32_t row) {
  uint32_t low = 0, high = batch.num_seqs;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (static_cast<uint32_t>(batch.query_offsets[middle]) <= row ? low : high) = middle;
  }
  return low;
}

// A sequence's chunk in one channel.
struct Channel {
  const float* x;       // the chunk's first row
  const float* loaded;  // the state before the chunk
  size_t stride;
  int32_t rows;
  int32_t context_len;
  int32_t taps;

  __device__ Channel(const ShortConvParams& p, uint32_t seq, uint32_t channel)
      : stride(p.channels),
        rows(p.batch.query_offsets[seq + 1] - p.batch.query_offsets[seq]),
        context_len(p.batch.context_lens[seq]),
        taps(static_cast<int32_t>(p.taps)) {
    x = p.x + static_cast<size_t>(p.batch.query_offsets[seq]) * stride + channel;
    loaded = StateOf(p, p.batch.load_slots[seq], channel);
  }
  __device__ static float* StateOf(const ShortConvParams& p, int32_t slot, uint32_t channel) {
    return p.state + static_cast<size_t>(slot) * (p.taps - 1) * p.channels + channel;
  }
  // x, `row` rows after the chunk's first; before it what the state had, zeros at position 0.
  __device__ float At(int32_t row) const {
    if (row >= 0) return x[static_cast<size_t>(row) * stride];
    return context_len == rows ? 0.0f : loaded[static_cast<size_t>(row + taps - 1) * stride];
  }
  // The state after `count` rows. Ascending, because it may keep some of its values.
  __device__ void WriteState(int32_t count, float* to) const {
#pragma unroll 1  // unrolled it spills, and taps are few
    for (int32_t i = 0; i + 1 < taps; ++i) {
      to[static_cast<size_t>(i) * stride] = At(count - taps + 1 + i);
    }
  }
};

__global__ void __launch_bounds__(kThreads) ShortConvKernel(const ShortConvParams p) {
  const uint32_t row = blockIdx.x, c = blockIdx.y * kThreads + threadIdx.x;
  if (c >= p.channels) return;
  const uint32_t seq = SequenceOf(p.batch, row);
  const Channel channel(p, seq, c);
  float out = 0;
  if (channel.context_len != 0) {
    const int32_t first = static_cast<int32_t>(row) - p.batch.query_offsets[seq] - channel.taps + 1;
    float sum = 0;
    for (int32_t j = 0; j < channel.taps; ++j) {
      sum += p.weight[static_cast<size_t>(c) * p.taps + j] * channel.At(first + j);
    }
    out = sum / (1.0f + expf(-sum));
  }
  p.out[static_cast<size_t>(row) * p.channels + c] = out;
}

__global__ void __launch_bounds__(kThreads) AdvanceKernel(const ShortConvParams p) {
  const uint32_t seq = blockIdx.x, c = blockIdx.y * kThreads + threadIdx.x;
  if (c >= p.channels) return;
  const Channel channel(p, seq, c);
  if (channel.context_len == 0) return;
  if (const int32_t save_after = p.batch.save_after[seq]; save_after > 0) {
    channel.WriteState(save_after, Channel::StateOf(p, p.batch.save_slots[seq], c));
  }
  channel.WriteState(channel.rows, Channel::StateOf(p, p.batch.slots[seq], c));
}

}  // namespace

void EncodeOp(Stream& stream, const ShortConvParams& params) {
  TANDEM_CHECK(params.taps >= 2 && params.taps <= kMaxConvTaps) << params.taps << " taps";
  const uint32_t blocks = Blocks(params.channels, kThreads);
  stream.Launch("short_conv", &ShortConvKernel, dim3(params.batch.tokens, blocks), kThreads, 0,
                params);
  stream.Launch("short_conv_state", &AdvanceKernel, dim3(params.batch.num_seqs, blocks), kThreads,
                0, params);
}

}  // namespace tandem::kernels::cuda
