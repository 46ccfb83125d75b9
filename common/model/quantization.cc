#include "common/model/quantization.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "common/gguf/keys.h"
#include "common/tensor/type.h"

namespace tandem::model {
namespace {

// Numbers of general.file_type: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
struct FileType {
  uint32_t number;
  std::string_view name;
};
constexpr FileType kFileTypes[] = {
    {0, "F32"},      {1, "F16"},      {2, "Q4_0"},       {3, "Q4_1"},    {7, "Q8_0"},
    {8, "Q5_0"},     {9, "Q5_1"},     {10, "Q2_K"},      {11, "Q3_K_S"}, {12, "Q3_K_M"},
    {13, "Q3_K_L"},  {14, "Q4_K_S"},  {15, "Q4_K_M"},    {16, "Q5_K_S"}, {17, "Q5_K_M"},
    {18, "Q6_K"},    {19, "IQ2_XXS"}, {20, "IQ2_XS"},    {21, "Q2_K_S"}, {22, "IQ3_XS"},
    {23, "IQ3_XXS"}, {24, "IQ1_S"},   {25, "IQ4_NL"},    {26, "IQ3_S"},  {27, "IQ3_M"},
    {28, "IQ2_S"},   {29, "IQ2_M"},   {30, "IQ4_XS"},    {31, "IQ1_M"},  {32, "BF16"},
    {36, "TQ1_0"},   {37, "TQ2_0"},   {38, "MXFP4_MOE"}, {39, "NVFP4"},  {40, "Q1_0"},
    {41, "Q2_0"},
};

std::string LargestType(const gguf::File& file) {
  std::map<tensor::Type, uint64_t> bytes;
  for (const gguf::TensorInfo& tensor : file.tensors()) bytes[tensor.type] += tensor.bytes;
  if (bytes.empty()) return "";
  const auto largest = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return std::string(tensor::Name(largest->first));
}

}  // namespace

std::string QuantizationName(const gguf::File& file) {
  const auto number = file.metadata().GetUint32(gguf::keys::kFileType);
  if (number.ok()) {
    for (const FileType& row : kFileTypes) {
      if (row.number == *number) return std::string(row.name);
    }
  }
  return LargestType(file);
}

}  // namespace tandem::model
