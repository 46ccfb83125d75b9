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
    const auto state_of = [&](const int32_t* slots) {
      return p.state + size_t(slots[seq]) * (taps_ - 1) * stride_ + channel;
    };
    state_ = state_of(p.batch.slots);
    saved_ = state_of(p.batch.save_slots);
    loaded_ = state_of(p.batch.load_slots);
  }

  // x, `row` rows after the chunk's first; before it, what the state had.
  float At(int row) const {
    if (row >= 0) return x_[size_t(row) * stride_];
    return loaded_[size_t(row + static_cast<int>(taps_) - 1) * stride_];
  }
  void Clear() {
    for (uint32_t i = 0; i + 1 < taps_; ++i) state_[i * stride_] = 0.0f;
    loaded_ = state_;
  }
  // The states after `save_after` and after all `rows` rows.
  void Advance(int rows, int save_after) {
    if (save_after > 0) Write(saved_, save_after);
    Write(state_, rows);
  }

 private:
  // Ascending, because the state may keep some of its values.
  void Write(float* to, int rows) {
    for (int i = 0; i + 1 < static_cast<int>(taps_); ++i) {
      to[size_t(i) * stride_] = At(rows - static_cast<int>(taps_) + 1 + i);
    }
  }

  const uint32_t taps_;
  const size_t stride_;
  const int32_t begin_;
  const float* x_;
  float* state_;
  float* saved_;
  const float* loaded_;
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
    channel.Advance(rows, p.batch.save_after[seq]);
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const ShortConvParams& params) {
  TANDEM_CHECK(params.taps >= 2 && params.taps <= kMaxConvTaps) << params.taps << " taps";
  list.Add("short_conv", params.batch.num_seqs, &ConvSequence, params);
}

}  // namespace tandem::kernels::reference
