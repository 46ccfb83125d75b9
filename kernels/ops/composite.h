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
#include <tuple>
#include <type_traits>
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

// Calls visit(norm), if there is one. Norm: NormParams or const NormParams.
template <class Norm, class Visit>
void VisitNorm(Norm& norm, Visit&& visit) {
  if (auto* rms_norm = std::get_if<RmsNormParams>(&norm)) visit(*rms_norm);
  if (auto* layer_norm = std::get_if<LayerNormParams>(&norm)) visit(*layer_norm);
}

// Calls encode(part) with each part, in order.
template <class Params, class Encode>
void Decompose(Params& params, Encode&& encode) {
  const auto one = [&](auto& part) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(part)>, NormParams>) {
      VisitNorm(part, encode);
    } else {
      encode(part);
    }
  };
  std::apply([&](auto&... parts) { (one(parts), ...); }, Params::Parts(params));
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
  const auto parts = Params::Parts(params);
  const void* const last = &std::get<std::tuple_size_v<decltype(parts)> - 1>(parts);
  Decompose(params, [&](auto& part) {
    if (&part == last) {
      part.ForEachPointer(part, visit);
    } else {
      part.ForEachPointer(part, HideOutputs<std::remove_reference_t<Visit>>{visit});
    }
  });
}

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_COMPOSITE_H_
