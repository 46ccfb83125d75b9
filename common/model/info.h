// The content of `tandem info`: a model file's properties, and the resources to run it on N ranks.
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

// The assumptions of the estimate.
struct InfoQuery {
  tensor::Type kv_type = tensor::Type::kF16;            // of the KV cache
  std::optional<uint64_t> memory_bytes = std::nullopt;  // per rank; counts the tokens that fit
};

// One tensor-parallel size. Bytes are the maximum over ranks.
struct ParallelInfo {
  int size = 1;
  bool possible = false;
  std::string why_not;  // empty if possible
  uint32_t heads_per_rank = 0;
  uint32_t kv_heads_per_rank = 0;  // maximum over ranks
  uint64_t weight_bytes_per_rank = 0;
  uint64_t kv_bytes_per_token_per_rank = 0;
  uint64_t state_bytes_per_sequence_per_rank = 0;  // 0 without recurrent layers
  // Tokens of sequences as long as the model's context whose cache fits beside the weights into the
  // given memory; empty if none was given. Activations are not counted: they depend on the server's
  // flags.
  std::optional<uint64_t> tokens_that_fit = std::nullopt;
};

struct ModelInfo {
  ModelSpec spec;
  uint32_t gguf_version = 0;
  size_t files = 1;         // more if the model is split
  uint64_t file_bytes = 0;  // of all files
  uint64_t fingerprint = 0;
  uint64_t tensors = 0;
  uint64_t parameters = 0;
  std::vector<TypeShare> types;         // most bytes first
  uint64_t kv_bytes_per_token_f16 = 0;  // of the whole model
  uint64_t kv_bytes_per_token_f32 = 0;
  std::vector<uint64_t> group_bytes_per_token;  // of spec.kv_groups, in query.kv_type
  uint64_t state_bytes_per_sequence = 0;        // of the whole model; 0 without recurrent layers
  uint64_t sequence_bytes = 0;                  // KV and state of the model's whole context
  // F16, of the whole model, without MLA's compression. Empty without MLA.
  std::optional<uint64_t> kv_bytes_per_token_unabsorbed = std::nullopt;
  std::vector<ParallelInfo> parallel;  // all possible sizes, and 1, 2, 4, 8
  InfoQuery query;
};

// INVALID_ARGUMENT if the model's heads cannot be kept in the given cache type. REQUIRES: `spec` is
// BuildSpec(file).
absl::StatusOr<ModelInfo> DescribeModel(const gguf::File& file, const ModelSpec& spec,
                                        const InfoQuery& query = {});

// Human-readable, several lines, each ending in a newline.
std::string FormatInfo(const ModelInfo& info);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_INFO_H_
