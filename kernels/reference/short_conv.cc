#include <cmath>

#include "common/base/check.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

// A sequence's window: row i of the chunk is window[i + taps - 1].
class Channel {
 public:
  Channel(const ShortConvParams& p, uint32_t seq, uint32_t channel)
      : taps_(p.taps), stride_(p.channels), begin_(p.batch.query_offsets[seq]) {
    x_ = p.x + size_t(begin_) * stride_ + channel;
    state_ = p.state + size_t(p.batch.slots[seq]) * (taps_ - 1) * stride_ + channel;
  }

  // x, `row` rows after the chunk's first; before it, what the state has.
  float At(int row) const {
    if (row >= 0) return x_[size_t(row) * stride_];
    return state_[size_t(row + static_cast<int>(taps_) - 1) * stride_];
  }
  void Clear() {
    for (uint32_t i = 0; i + 1 < taps_; ++i) state_[i * stride_] = 0.0f;
  }
  // The state after `rows` rows. Ascending, because it may keep some of its values.
  void Advance(int rows) {
    for (int i = 0; i + 1 < static_cast<int>(taps_); ++i) {
      state_[size_t(i) * stride_] = At(rows - static_cast<int>(taps_) + 1 + i);
    }
  }

 private:
  const uint32_t taps_;
  const size_t stride_;
  const int32_t begin_;
  const float* x_;
  float* state_;
};

void ConvSequence(const ShortConvParams& p, const host::TaskContext& context) {
  const uint32_t seq = context.task;
  const int32_t begin = p.batch.query_offsets[seq];
  const int32_t rows = p.batch.query_offsets[seq + 1] - begin;
  const int32_t context_len = p.batch.context_lens[seq];
  const auto taps = static_cast<int>(p.taps);
  for (uint32_t c = 0; c < p.channels; ++c) {
    float* const out = p.out + size_t(begin) * p.channels + c;
    if (context_len == 0) {
      for (int i = 0; i < rows; ++i) out[size_t(i) * p.channels] = 0.0f;
      continue;
    }
    Channel channel(p, seq, c);
    if (context_len == rows) channel.Clear();
    for (int i = 0; i < rows; ++i) {
      double sum = 0;
      for (int j = 0; j < taps; ++j) {
        sum += double{p.weight[size_t(c) * p.taps + j]} * channel.At(i - taps + 1 + j);
      }
      out[size_t(i) * p.channels] = static_cast<float>(sum / (1.0 + std::exp(-sum)));
    }
    channel.Advance(rows);
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const ShortConvParams& params) {
  TANDEM_CHECK(params.taps >= 2 && params.taps <= kMaxConvTaps) << params.taps << " taps";
  list.Add("short_conv", params.batch.num_seqs, &ConvSequence, params);
}

}  // namespace tandem::kernels::reference
