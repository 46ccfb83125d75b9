// Writes complete small models for tests: any sizes, features and tensor types, with pseudo-random
// bytes as weights.
#ifndef TANDEM_TESTS_COMMON_MODEL_TINY_MODEL_H_
#define TANDEM_TESTS_COMMON_MODEL_TINY_MODEL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/gguf/file.h"
#include "common/model/architecture.h"
#include "common/tensor/type.h"
#include "tests/common/gguf/gguf_builder.h"

namespace tandem::model {

struct TinyModel {
  std::string architecture = "llama";
  uint32_t layers = 2;
  bool draft_head = false;  // the last of them is one
  uint32_t hidden = 32;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 8;
  uint32_t ffn = 64;
  uint32_t vocab = 37;
  std::optional<uint32_t> other_token;  // is "other", and not t0, t1, ... as all are
  uint32_t context = 128;
  bool qkv_bias = false;
  bool output_bias = false;
  bool qk_norm = false;
  bool tied = false;
  std::vector<float> rope_factors;                // empty: no tensor
  tensor::Type matrix_type = tensor::Type::kF32;  // of two-dimensional tensors
  tensor::Type vector_type = tensor::Type::kF32;  // of the others that are whole blocks of it
  // Adds further keys.
  std::function<void(gguf::GgufBuilder&)> more_keys = [](gguf::GgufBuilder&) {};
  // Adds further tensors.
  std::function<void(gguf::GgufBuilder&)> more_tensors = [](gguf::GgufBuilder&) {};
  // Leaves a tensor out.
  std::function<bool(const std::string&)> skip = [](const std::string&) { return false; };
  // Keys that are not written, without the architecture's prefix.
  std::vector<std::string> skip_keys;

  // The bytes of the file.
  std::vector<std::byte> Build() const;
};

// A model with its bytes: views stay valid as long as it lives.
struct BuiltModel {
  std::vector<std::byte> bytes;
  gguf::File file;
};
// REQUIRES: the model is one that gguf::File reads.
BuiltModel BuildTiny(const TinyModel& model);

}  // namespace tandem::model

#endif  // TANDEM_TESTS_COMMON_MODEL_TINY_MODEL_H_
