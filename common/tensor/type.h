// Element types of GGUF tensors and KV pages, and how many bytes their blocks take.
//
// Numbers are ggml's, as GGUF files store them
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#ifndef TANDEM_COMMON_TENSOR_TYPE_H_
#define TANDEM_COMMON_TENSOR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::tensor {

enum class Type : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

// One row of the table of types.
struct TypeTraits {
  Type type;
  std::string_view name;  // common name: "Q4_K"
  uint32_t block_values;  // values per block; 1 for plain floats
  uint32_t block_bytes;   // bytes per block
  bool supported;         // weights of this type can be loaded and computed with
};

// The traits of a type number found in a file; empty for a number not in the table.
std::optional<TypeTraits> FindTypeTraits(uint32_t ggml_type);
// The traits of a known type.
const TypeTraits& Traits(Type type);
inline std::string_view Name(Type type) { return Traits(type).name; }

// Bytes of a row of `values` values. REQUIRES: `values` is a multiple of block_values.
uint64_t RowBytes(Type type, uint64_t values);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_TYPE_H_
