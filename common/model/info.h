// What `tandem info` tells about a model file: what is in it, and what running it on N ranks takes.
#ifndef TANDEM_COMMON_MODEL_INFO_H_
#define TANDEM_COMMON_MODEL_INFO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/spec.h"
#include "common/tensor/type.h"

namespace tandem::model {

// Tensors of one type.
struct TypeShare {
  tensor::Type type{};
  uint64_t tensors = 0;
  uint64_t parameters = 0;
  uint64_t bytes = 0;
};

// What to reckon with.
struct InfoQuery {
  tensor::Type kv_type = tensor::Type::kF16;            // of the KV cache
  std::optional<uint64_t> memory_bytes = std::nullopt;  // of each rank: how many tokens fit?
};

// One tensor-parallel size. The bytes are those of the rank that needs most.
struct ParallelInfo {
  int size = 1;
  bool possible = false;
  std::string why_not;  // empty where it is possible
  uint32_t heads_per_rank = 0;
  uint32_t kv_heads_per_rank = 0;  // of the rank that has most
  uint64_t weight_bytes_per_rank = 0;
  uint64_t kv_bytes_per_token_per_rank = 0;
  // Tokens of sequences as long as the model's context whose cache fits beside the weights into the
  // memory asked about; empty where none was. A step's activations are not counted: they depend on
  // the server's flags.
  std::optional<uint64_t> tokens_that_fit = std::nullopt;
};

struct ModelInfo {
  ModelSpec spec;
  uint32_t gguf_version = 0;
  size_t files = 1;         // more where the model is split
  uint64_t file_bytes = 0;  // of all files
  uint64_t fingerprint = 0;
  uint64_t tensors = 0;
  uint64_t parameters = 0;
  std::vector<TypeShare> types;         // most bytes first
  uint64_t kv_bytes_per_token_f16 = 0;  // of the whole model
  uint64_t kv_bytes_per_token_f32 = 0;
  // F16, of the whole model: what MLA saves. Empty without MLA.
  std::optional<uint64_t> kv_bytes_per_token_unabsorbed = std::nullopt;
  std::vector<ParallelInfo> parallel;  // for 1, 2, 4, 8
  InfoQuery query;                     // what the numbers of `parallel` are for
};

// INVALID_ARGUMENT where the model's heads cannot be kept in the cache type asked about. REQUIRES:
// `spec` is BuildSpec(file).
absl::StatusOr<ModelInfo> DescribeModel(const gguf::File& file, const ModelSpec& spec,
                                        const InfoQuery& query = {});

// Several lines for a person, each ending in a newline.
std::string FormatInfo(const ModelInfo& info);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_INFO_H_
