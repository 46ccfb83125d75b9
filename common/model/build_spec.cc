#include "common/model/build_spec.h"

#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"
#include "common/model/architecture.h"
#include "common/model/build_rope.h"
#include "common/model/check_tensors.h"
#include "common/model/quantization.h"

namespace tandem::model {
namespace {

namespace keys = gguf::keys;

// Metadata with the architecture's prefix already known.
class Reader {
 public:
  Reader(const gguf::Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), architecture_(architecture) {}

  absl::StatusOr<uint32_t> Size(std::string_view key) const {
    const std::string full = gguf::KeyFor(key, architecture_);
    TANDEM_ASSIGN_OR_RETURN(const uint32_t size, metadata_.GetUint32(full));
    if (size == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", gguf::Quoted(full), ": needed at least 1, found 0"));
    }
    return size;
  }
  absl::StatusOr<uint32_t> Size(std::string_view key, uint32_t otherwise) const {
    if (!metadata_.Has(gguf::KeyFor(key, architecture_))) return otherwise;
    return Size(key);
  }
  absl::StatusOr<float> Float(std::string_view key) const {
    return metadata_.GetFloat(gguf::KeyFor(key, architecture_));
  }

 private:
  const gguf::Metadata& metadata_;
  std::string_view architecture_;
};

absl::StatusOr<const Architecture*> ReadArchitecture(const gguf::Metadata& metadata) {
  TANDEM_ASSIGN_OR_RETURN(const std::string_view name, metadata.GetString(keys::kArchitecture));
  const Architecture* architecture = FindArchitecture(name);
  if (architecture == nullptr) {
    std::string known;
    for (const Architecture& row : Architectures()) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", Sv(row.name));
    }
    return absl::UnimplementedError(
        absl::StrCat("architecture ", gguf::Quoted(name), " is not supported, only ", known));
  }
  return architecture;
}

// What Tandem would get wrong rather than fail on.
absl::Status RefuseOtherMathematics(const gguf::Metadata& metadata, std::string_view architecture) {
  const std::string experts_key = gguf::KeyFor(keys::kExpertCount, architecture);
  TANDEM_ASSIGN_OR_RETURN(const auto experts, metadata.FindUint32(experts_key));
  if (experts.value_or(0) > 0) {
    return absl::UnimplementedError(absl::StrCat("key ", gguf::Quoted(experts_key), " is ",
                                                 *experts,
                                                 ": mixtures of experts are not supported"));
  }
  const std::string causal_key = gguf::KeyFor(keys::kCausal, architecture);
  TANDEM_ASSIGN_OR_RETURN(const auto causal, metadata.FindBool(causal_key));
  if (!causal.value_or(true)) {
    return absl::UnimplementedError(absl::StrCat("key ", gguf::Quoted(causal_key),
                                                 " is false: only causal models are supported"));
  }
  return absl::OkStatus();
}

absl::Status ReadHeads(const Reader& reader, ModelSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(spec.num_heads, reader.Size(keys::kHeadCount));
  TANDEM_ASSIGN_OR_RETURN(spec.num_kv_heads, reader.Size(keys::kHeadCountKv, spec.num_heads));
  TANDEM_ASSIGN_OR_RETURN(spec.head_dim, reader.Size(keys::kKeyLength, 0));
  if (spec.head_dim == 0) {
    if (spec.hidden_size % spec.num_heads != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the ", spec.num_heads, " heads do not divide the embedding length ", spec.hidden_size));
    }
    spec.head_dim = spec.hidden_size / spec.num_heads;
  }
  TANDEM_ASSIGN_OR_RETURN(spec.value_dim, reader.Size(keys::kValueLength, spec.head_dim));
  spec.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
  return absl::OkStatus();
}

absl::Status ReadSizes(const gguf::File& file, const Reader& reader, ModelSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(spec.num_layers, reader.Size(keys::kBlockCount));
  TANDEM_ASSIGN_OR_RETURN(spec.hidden_size, reader.Size(keys::kEmbeddingLength));
  TANDEM_ASSIGN_OR_RETURN(spec.ffn_size, reader.Size(keys::kFeedForwardLength));
  TANDEM_ASSIGN_OR_RETURN(spec.context_length, reader.Size(keys::kContextLength));
  TANDEM_RETURN_IF_ERROR(ReadHeads(reader, spec));
  TANDEM_ASSIGN_OR_RETURN(spec.norm_epsilon, reader.Float(keys::kRmsEpsilon));
  TANDEM_ASSIGN_OR_RETURN(const gguf::StringArray tokens,
                          file.metadata().GetStrings(keys::kTokens));
  if (tokens.size() > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", gguf::Quoted(keys::kTokens), " has ", tokens.size(), " tokens"));
  }
  spec.vocab_size = static_cast<uint32_t>(tokens.size());
  TANDEM_RETURN_IF_ERROR(spec.ValidateSizes());
  // Every layer has tensors of its own, so this bounds the work below by the file's size.
  if (spec.num_layers > file.tensors().size()) {
    return absl::InvalidArgumentError(absl::StrCat("the file states ", spec.num_layers,
                                                   " layers but has only ", file.tensors().size(),
                                                   " tensors"));
  }
  return absl::OkStatus();
}

std::vector<KvGroupSpec> OneFullGroup(uint32_t num_layers) {
  KvGroupSpec group;
  group.layers.resize(num_layers);
  std::iota(group.layers.begin(), group.layers.end(), 0u);
  return {group};
}

}  // namespace

absl::StatusOr<ModelSpec> BuildSpec(const gguf::File& file) {
  if (file.tensors().empty()) {
    return absl::InvalidArgumentError(
        "the file has no tensors: a vocabulary alone can be tokenized with but not run");
  }
  const gguf::Metadata& metadata = file.metadata();
  TANDEM_ASSIGN_OR_RETURN(const Architecture* architecture, ReadArchitecture(metadata));
  TANDEM_RETURN_IF_ERROR(RefuseOtherMathematics(metadata, architecture->name));
  ModelSpec spec;
  spec.architecture = architecture->name;
  TANDEM_ASSIGN_OR_RETURN(const auto name, metadata.FindString(keys::kName));
  spec.name = name.value_or("");
  spec.quantization = QuantizationName(file);
  TANDEM_RETURN_IF_ERROR(ReadSizes(file, Reader(metadata, architecture->name), spec));
  TANDEM_ASSIGN_OR_RETURN(spec.rope,
                          ReadRope(metadata, architecture->name, architecture->pairing, spec));
  TANDEM_RETURN_IF_ERROR(ProbeFeatures(file, *architecture, spec));
  TANDEM_RETURN_IF_ERROR(CheckTensors(file, *architecture, spec));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<float> factors, ReadRopeFactors(file));
  FoldFrequencies(factors, spec.rope);
  spec.kv_groups = OneFullGroup(spec.num_layers);
  TANDEM_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

}  // namespace tandem::model
