// Qkv: from the hidden state to rotated queries and to rows of the KV cache.
#ifndef TANDEM_KERNELS_OPS_QKV_H_
#define TANDEM_KERNELS_OPS_QKV_H_

#include <string_view>
#include <tuple>

#include "kernels/ops/composite.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/rope_write_kv.h"

namespace tandem::kernels {

// x = norm(...), where there is one; q, k, v = x W^T, or a part of them; norms of every head where
// the model has them: of v, from v or from what k is before its own norm, then of q and k, in
// place; RoPE of q and k, and the write of k and v to the pages.
struct QkvParams {
  static constexpr std::string_view kName = "Qkv";

  NormParams norm;
  MatMulParams product;  // q, k, v
  NormParams v_norm;
  NormParams q_norm;
  NormParams k_norm;
  RopeWriteKvParams write;

  static auto Parts(auto& p) {
    return std::tie(p.norm, p.product, p.v_norm, p.q_norm, p.k_norm, p.write);
  }
  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    ForEachPointerOfParts(p, visit);
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_QKV_H_
