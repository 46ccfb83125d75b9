// Floor: reads gate (and up), 4 bytes per value, 8 with up; writes 1.5.
#include "kernels/cuda/rows/activate_to_bytes.h"

#include "common/base/check.h"
#include "kernels/cuda/rows/activation.h"
#include "kernels/cuda/rows/quantize_rows_kernel.h"

namespace tandem::kernels::cuda {
namespace {

template <Activation kFunction>
struct ActivatedRows {
  ActivateParams params;

  template <uint32_t kWidth>
  __device__ __forceinline__ Floats<kWidth> Run(uint32_t row, uint32_t i) const {
    return ActivatedRun<kFunction, kWidth>(params, row, i);
  }
};

}  // namespace

void EncodeActivateToBytes(Stream& stream, const ActivateParams& params, ColumnRange columns,
                           Int8Group* to) {
  TANDEM_CHECK(params.up != nullptr || params.function != Activation::kClampedSwiGlu);
  TANDEM_CHECK(columns.count == params.cols) << columns.count << " of " << params.cols;
  const bool fours = InFours({params.cols, columns.begin}, {params.gate, params.up});
  DispatchActivation(params.function, [&](auto function) {
    LaunchQuantizeRows(stream, "activate_to_bytes",
                       ActivatedRows<decltype(function)::value>{params}, params.rows, columns,
                       fours, to);
  });
}

}  // namespace tandem::kernels::cuda
