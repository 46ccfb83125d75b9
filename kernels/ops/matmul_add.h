// MatMulAdd: a product that is added to rows.
#ifndef TANDEM_KERNELS_OPS_MATMUL_ADD_H_
#define TANDEM_KERNELS_OPS_MATMUL_ADD_H_

#include <string_view>
#include <tuple>

#include "kernels/ops/composite.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/rows.h"

namespace tandem::kernels {

// y += x W^T (+ bias), each row times sigmoid(gate) where there is a gate. `add` reads what the one
// projection of `product` writes.
struct MatMulAddParams {
  static constexpr std::string_view kName = "MatMulAdd";

  MatMulParams product;
  AddRowsParams add;

  static auto Parts(auto& p) { return std::tie(p.product, p.add); }
  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    ForEachPointerOfParts(p, visit);
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_MATMUL_ADD_H_
