// FeedForward: a feed-forward block.
#ifndef TANDEM_KERNELS_OPS_FEED_FORWARD_H_
#define TANDEM_KERNELS_OPS_FEED_FORWARD_H_

#include <string_view>
#include <tuple>
#include <variant>

#include "kernels/ops/activate.h"
#include "kernels/ops/composite.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/matmul_add.h"

namespace tandem::kernels {

// x = norm(...), where there is one; gate = x G^T and up = x U^T; h = f(gate) * up, or without a
// gate h = f(x U^T); y = h D^T, or y += h D^T. `activate` reads what `up` writes, without scales,
// and `down` reads what `activate` writes.
struct FeedForwardParams {
  static constexpr std::string_view kName = "FeedForward";

  NormParams norm;
  MatMulParams up;  // gate, up; or up alone
  ActivateParams activate;
  std::variant<MatMulParams, MatMulAddParams> down;

  static auto Parts(auto& p) { return std::tie(p.norm, p.up, p.activate, p.down); }
  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    ForEachPointerOfParts(p, visit);
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_FEED_FORWARD_H_
