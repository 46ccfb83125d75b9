// Op: one call of one op, as a value. Plain data; copying it copies no array.
//
// A new op is one more line here; see docs/adding-an-op.md.
#ifndef TANDEM_KERNELS_OP_H_
#define TANDEM_KERNELS_OP_H_

#include <string_view>
#include <utility>
#include <variant>

#include "kernels/ops.h"

namespace tandem::kernels {

using Op = std::variant<    //
    EmbedParams,            //
    RmsNormParams,          //
    LayerNormParams,        //
    SumSquaresParams,       //
    MatMulParams,           //
    RouteParams,            //
    ExpertMatMulParams,     //
    HeadMatMulParams,       //
    RopeWriteKvParams,      //
    AttentionParams,        //
    ShortConvParams,        //
    GatedDeltaRuleParams,   //
    ActivateParams,         //
    AddRowsParams,          //
    CopyRowsParams,         //
    SoftCapParams,          //
    GatherRowsParams,       //
    ScatterRunsParams,      //
    PoolRowsParams,         //
    UnshardLogitsParams,    //
    SampleParams,           //
    LogProbsParams,         //
    FeedForwardParams,      //
    QkvParams,              //
    NormMatMulParams,       //
    AttentionMatMulParams,  //
    MatMulAddParams>;

// "MatMul".
inline std::string_view OpName(const Op& op) {
  return std::visit([](const auto& params) { return params.kName; }, op);
}

// Every array and weight of `op`, an Op or a const Op: see kernels/ops/array.h.
template <class OpT, class Visit>
void ForEachPointer(OpT& op, Visit&& visit) {
  std::visit([&](auto& params) { params.ForEachPointer(params, visit); }, op);
}

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OP_H_
