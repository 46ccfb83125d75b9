// NormMatMul: a product of normed rows.
#ifndef TANDEM_KERNELS_OPS_NORM_MATMUL_H_
#define TANDEM_KERNELS_OPS_NORM_MATMUL_H_

#include <string_view>
#include <tuple>

#include "kernels/ops/composite.h"
#include "kernels/ops/matmul.h"

namespace tandem::kernels {

// x = norm(...); y = x W^T (+ bias). The product reads what the norm writes.
struct NormMatMulParams {
  static constexpr std::string_view kName = "NormMatMul";

  NormParams norm;
  MatMulParams product;

  static auto Parts(auto& p) { return std::tie(p.norm, p.product); }
  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    ForEachPointerOfParts(p, visit);
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_NORM_MATMUL_H_
