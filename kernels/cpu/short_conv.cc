// ShortConv, compiled once per instruction set. A task is kConvChannels channels of a sequence.
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {
namespace {

// Up to kLanes channels of a sequence's chunk. Addresses are those of the first channel.
struct Lane {
  const float* x;       // the chunk's first row
  const float* loaded;  // the state before the chunk
  float* out;
  size_t stride;
  int rows;
  int taps;
  int lanes;

  // x, `row` rows after the chunk's first; before it, what the state had.
  Vec At(int row) const {
    const float* const from = row >= 0 ? x + static_cast<size_t>(row) * stride
                                       : loaded + static_cast<size_t>(row + taps - 1) * stride;
    return lanes == kLanes ? Load(from) : LoadPartial(from, lanes);
  }
};

void Convolve(const Lane& lane, const Vec* weights) {
  for (int row = 0; row < lane.rows; ++row) {
    Vec sum = Zero();
    for (int j = 0; j < lane.taps; ++j) {
      sum = Fma(weights[j], lane.At(row - lane.taps + 1 + j), sum);
    }
    StorePartial(lane.out + static_cast<size_t>(row) * lane.stride, Silu(sum), lane.lanes);
  }
}

// Writes the state after `rows` rows. Ascending, because it may keep some of its rows.
void WriteState(const Lane& lane, int rows, float* to) {
  for (int i = 0; i + 1 < lane.taps; ++i) {
    StorePartial(to + static_cast<size_t>(i) * lane.stride, lane.At(rows - lane.taps + 1 + i),
                 lane.lanes);
  }
}

void ClearRows(float* rows, size_t stride, int count, int lanes) {
  for (int i = 0; i < count; ++i)
    StorePartial(rows + static_cast<size_t>(i) * stride, Zero(), lanes);
}

}  // namespace

void ConvChannels(const ShortConvParams& p, const host::TaskContext& context) {
  const uint32_t blocks = (p.channels + kConvChannels - 1) / kConvChannels;
  const uint32_t seq = context.task / blocks, first = context.task % blocks * kConvChannels;
  const uint32_t last = p.channels - first < kConvChannels ? p.channels : first + kConvChannels;
  const size_t begin = static_cast<size_t>(p.batch.query_offsets[seq]);
  const int rows = p.batch.query_offsets[seq + 1] - p.batch.query_offsets[seq];
  const int context_len = p.batch.context_lens[seq];
  const int save_after = p.batch.save_after[seq];
  const auto state_of = [&](const int32_t* slots, uint32_t channel) {
    return p.state + static_cast<size_t>(slots[seq]) * (p.taps - 1) * p.channels + channel;
  };
  for (uint32_t c = first; c < last; c += kLanes) {
    const int lanes = last - c < kLanes ? static_cast<int>(last - c) : kLanes;
    float* const state = state_of(p.batch.slots, c);
    const bool is_first = context_len == rows;
    const Lane lane = {.x = p.x + begin * p.channels + c,
                       .loaded = is_first ? state : state_of(p.batch.load_slots, c),
                       .out = p.out + begin * p.channels + c,
                       .stride = p.channels,
                       .rows = rows,
                       .taps = static_cast<int>(p.taps),
                       .lanes = lanes};
    if (context_len == 0) {
      ClearRows(lane.out, lane.stride, rows, lanes);
      continue;
    }
    if (is_first) ClearRows(state, lane.stride, lane.taps - 1, lanes);
    Vec weights[kMaxConvTaps];
    for (uint32_t j = 0; j < p.taps; ++j) {
      float of_tap[kLanes] = {};
      for (int i = 0; i < lanes; ++i) {
        of_tap[i] = p.weight[static_cast<size_t>(c + static_cast<uint32_t>(i)) * p.taps + j];
      }
      weights[j] = Load(of_tap);
    }
    Convolve(lane, weights);
    if (save_after > 0) WriteState(lane, save_after, state_of(p.batch.save_slots, c));
    WriteState(lane, rows, state);
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
