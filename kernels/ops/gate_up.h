// GateUp: the first half of a feed-forward block.
#ifndef TANDEM_KERNELS_OPS_GATE_UP_H_
#define TANDEM_KERNELS_OPS_GATE_UP_H_

#include <string_view>
#include <tuple>

#include "kernels/ops/activate.h"
#include "kernels/ops/composite.h"
#include "kernels/ops/matmul.h"

namespace tandem::kernels {

// x = norm(...), where there is one; gate = x G^T and up = x U^T; out = f(gate) * up. Without a
// gate: out = f(x U^T). `activate` reads what `product` writes.
struct GateUpParams {
  static constexpr std::string_view kName = "GateUp";

  NormParams norm;
  MatMulParams product;  // gate, up; or up alone
  ActivateParams activate;

  static auto Parts(auto& p) { return std::tie(p.norm, p.product, p.activate); }
  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    ForEachPointerOfParts(p, visit);
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_GATE_UP_H_
