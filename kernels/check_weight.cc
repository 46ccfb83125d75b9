#include "kernels/check_weight.h"

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/tensor/type.h"

namespace tandem::kernels {

absl::Status CheckWeightShape(const Weight& weight) {
  const uint32_t block = tensor::Traits(weight.type).block_values;
  if (weight.cols % block != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a ", Sv(tensor::Name(weight.type)),
                                                   " weight of ", weight.cols,
                                                   " columns is not a multiple of ", block));
  }
  if (uint64_t{weight.col_begin} + weight.col_count > weight.cols) {
    return absl::InvalidArgumentError(absl::StrCat("columns [", weight.col_begin, ", +",
                                                   weight.col_count, ") lie outside a weight of ",
                                                   weight.cols));
  }
  if (weight.row_stride_bytes < tensor::RowBytes(weight.type, weight.cols)) {
    return absl::InvalidArgumentError(
        absl::StrCat("row stride ", weight.row_stride_bytes, " is below the ",
                     tensor::RowBytes(weight.type, weight.cols), " bytes of a row"));
  }
  return absl::OkStatus();
}

absl::Status CheckWeightScales(const Weight& weight) {
  if (weight.scales == nullptr || weight.use == WeightUse::kProduct) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "a scale of a ", Sv(tensor::Name(weight.type)), " weight for ",
      weight.use == WeightUse::kHeads ? "products per head" : "lookups", " is not supported"));
}

}  // namespace tandem::kernels
