#include "common/tensor/type.h"

#include "common/base/check.h"

namespace tandem::tensor {
namespace {

// A row that is not `supported` exists so that messages can name a file's type.
constexpr TypeTraits kTable[] = {
    {Type::kF32, "F32", 1, 4, true},
    {Type::kF16, "F16", 1, 2, true},
    {Type::kQ4_0, "Q4_0", 32, 18, true},
    {Type::kQ4_1, "Q4_1", 32, 20, true},
    {Type::kQ5_0, "Q5_0", 32, 22, true},
    {Type::kQ5_1, "Q5_1", 32, 24, true},
    {Type::kQ8_0, "Q8_0", 32, 34, true},
    {Type::kQ2_K, "Q2_K", 256, 84, true},
    {Type::kQ3_K, "Q3_K", 256, 110, true},
    {Type::kQ4_K, "Q4_K", 256, 144, true},
    {Type::kQ5_K, "Q5_K", 256, 176, true},
    {Type::kQ6_K, "Q6_K", 256, 210, true},
    {Type::kIQ2_XXS, "IQ2_XXS", 256, 66, true},
    {Type::kIQ2_XS, "IQ2_XS", 256, 74, true},
    {Type::kIQ3_XXS, "IQ3_XXS", 256, 98, true},
    {Type::kIQ1_S, "IQ1_S", 256, 50, true},
    {Type::kIQ4_NL, "IQ4_NL", 32, 18, true},
    {Type::kIQ3_S, "IQ3_S", 256, 110, true},
    {Type::kIQ2_S, "IQ2_S", 256, 82, true},
    {Type::kIQ4_XS, "IQ4_XS", 256, 136, true},
    {Type::kF64, "F64", 1, 8, false},
    {Type::kIQ1_M, "IQ1_M", 256, 56, true},
    {Type::kBF16, "BF16", 1, 2, true},
    {Type::kTQ1_0, "TQ1_0", 256, 54, true},
    {Type::kTQ2_0, "TQ2_0", 256, 66, true},
    {Type::kMXFP4, "MXFP4", 32, 17, true},
    {Type::kNVFP4, "NVFP4", 64, 36, true},
    {Type::kQ1_0, "Q1_0", 128, 18, true},
    {Type::kQ2_0, "Q2_0", 64, 18, true},
};

const TypeTraits* Find(uint32_t number) {
  for (const TypeTraits& row : kTable) {
    if (static_cast<uint32_t>(row.type) == number) return &row;
  }
  return nullptr;
}

}  // namespace

std::optional<TypeTraits> FindTypeTraits(uint32_t ggml_type) {
  const TypeTraits* row = Find(ggml_type);
  return row == nullptr ? std::nullopt : std::optional<TypeTraits>(*row);
}

const TypeTraits& Traits(Type type) {
  const TypeTraits* row = Find(static_cast<uint32_t>(type));
  TANDEM_CHECK(row != nullptr) << "type number " << static_cast<uint32_t>(type);
  return *row;
}

uint64_t RowBytes(Type type, uint64_t values) {
  const TypeTraits& traits = Traits(type);
  TANDEM_CHECK(values % traits.block_values == 0) << traits.name << ", " << values << " values";
  return values / traits.block_values * traits.block_bytes;
}

}  // namespace tandem::tensor
