// Activations in blocks of bytes (quant_block.h). Needs AVX2.
#ifndef TANDEM_KERNELS_CPU_MATMUL_QUANTIZE_H_
#define TANDEM_KERNELS_CPU_MATMUL_QUANTIZE_H_

#include <cstdint>

#include "kernels/cpu/matmul/quant_block.h"

namespace tandem::kernels::cpu {

// Quantises blocks, of any rows, four at a time, because the steps for a single block (its largest
// value, scale and sums) wait for each other. Not thread-safe.
class Quantizer {
 public:
  Quantizer() = default;
  Quantizer(const Quantizer&) = delete;
  Quantizer& operator=(const Quantizer&) = delete;
  ~Quantizer() { Finish(); }

  // Quantises the window of `blocks` * 32 values that holds `lead` zeros, then x[0 .. count), then
  // zeros: the layout of a shard's activations in whole blocks of the weight. Each block depends
  // on its own 32 values only. A value that is not finite makes its block's scale so; magnitudes
  // below 2^-100 count as zero. Until Finish, or the quantiser's end, x must stay as it is, and
  // `out` is not complete.
  void AddRow(const float* x, uint32_t count, uint32_t lead, uint32_t blocks, QuantBlock* out);

  // Writes all that was added.
  void Finish();

 private:
  static constexpr uint32_t kAtOnce = 4;

  void Add(const float* x, QuantBlock* out);

  const float* x_[kAtOnce];
  QuantBlock* out_[kAtOnce];
  uint32_t waiting_ = 0;
  float edges_[kAtOnce][QuantBlock::kValues];  // waiting blocks that x covers only in part
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_QUANTIZE_H_
