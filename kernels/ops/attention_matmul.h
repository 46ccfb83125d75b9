// AttentionMatMul: attention and the projection of its output.
#ifndef TANDEM_KERNELS_OPS_ATTENTION_MATMUL_H_
#define TANDEM_KERNELS_OPS_ATTENTION_MATMUL_H_

#include <string_view>
#include <tuple>

#include "kernels/ops/attention.h"
#include "kernels/ops/composite.h"
#include "kernels/ops/matmul.h"

namespace tandem::kernels {

// x = attention(...); y = x W^T (+ bias). The product reads what attention writes.
struct AttentionMatMulParams {
  static constexpr std::string_view kName = "AttentionMatMul";

  AttentionParams attention;
  MatMulParams product;

  static auto Parts(auto& p) { return std::tie(p.attention, p.product); }
  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    ForEachPointerOfParts(p, visit);
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_ATTENTION_MATMUL_H_
