// Composite ops: ops that follow one another in every layer, encoded as one, so that a backend that
// is faster at the whole than at the parts can take them together.
//
// A composite holds its parts' parameters, intermediate arrays included, and names them in order:
//
//   static auto Parts(auto& p) { return std::tie(p.product, p.activate); }
//
// Its results equal those of its parts encoded in order, bit for bit. Intermediate arrays are
// undefined afterwards. A backend without an overload for it encodes the parts (Decompose).
#ifndef TANDEM_KERNELS_OPS_COMPOSITE_H_
#define TANDEM_KERNELS_OPS_COMPOSITE_H_

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "kernels/ops/array.h"
#include "kernels/ops/norm.h"

namespace tandem::kernels {

template <class Params>
concept Composite = requires(Params& params) {
  Params::Parts(params);
};

// A norm that may be missing.
using NormParams = std::variant<std::monostate, RmsNormParams, LayerNormParams>;

// A part that may be one of several ops, or none.
template <class Part>
concept VariantPart = requires(Part& part) {
  part.valueless_by_exception();
};

// Calls visit(part), or with the op that it holds, if it holds one.
template <class Part, class Visit>
void VisitPart(Part& part, Visit&& visit) {
  if constexpr (VariantPart<Part>) {
    std::visit(
        [&](auto& op) {
          if constexpr (!std::same_as<std::remove_cvref_t<decltype(op)>, std::monostate>) visit(op);
        },
        part);
  } else {
    visit(part);
  }
}

// Calls encode(part) with each part, in order.
template <class Params, class Encode>
void Decompose(Params& params, Encode&& encode) {
  std::apply([&](auto&... parts) { (VisitPart(parts, encode), ...); }, Params::Parts(params));
}

// What a part writes for the next to read: see ForEachPointerOfParts.
template <class Visit>
struct HideOutputs {
  Visit& visit;

  template <class T>
  void operator()(const char* name, T& pointer, Array array) const {
    if (array.access == Access::kOut) array.access = Access::kScratch;
    visit(name, pointer, array);
  }
  template <class T>
  void operator()(const char* name, T& weight) const {
    visit(name, weight);
  }
};

// ForEachPointer of a composite. What a part before the last writes, and does not update, is
// Access::kScratch.
template <class Params, class Visit>
void ForEachPointerOfParts(Params& params, Visit&& visit) {
  const auto visit_pointers = [&](auto& part, auto&& each) {
    VisitPart(part, [&](auto& op) { op.ForEachPointer(op, each); });
  };
  const auto parts = Params::Parts(params);
  constexpr size_t kLast = std::tuple_size_v<decltype(Params::Parts(params))> - 1;
  [&]<size_t... kPart>(std::index_sequence<kPart...>) {
    (visit_pointers(std::get<kPart>(parts), HideOutputs<std::remove_reference_t<Visit>>{visit}),
     ...);
  }
  (std::make_index_sequence<kLast>());
  visit_pointers(std::get<kLast>(parts), visit);
}

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_COMPOSITE_H_
