#include "common/model/build_spec.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"
#include "common/model/architecture.h"
#include "common/model/build_rope.h"
#include "common/model/check_tensors.h"
#include "common/model/metadata_reader.h"
#include "common/model/quantization.h"
#include "common/model/read_delta_net.h"
#include "common/model/read_groups.h"
#include "common/model/read_layer_scales.h"
#include "common/model/read_mixture.h"

namespace tandem::model {
namespace {

namespace keys = gguf::keys;

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

// Features that would give wrong results rather than an error.
absl::Status RefuseOtherMathematics(const MetadataReader& reader,
                                    const Architecture& architecture) {
  TANDEM_ASSIGN_OR_RETURN(const bool causal, reader.Bool(keys::kCausal, true));
  if (!causal) {
    return absl::UnimplementedError(absl::StrCat("key ", gguf::Quoted(reader.Full(keys::kCausal)),
                                                 " is false: only causal models are supported"));
  }
  if (architecture.sectioned_rope || !reader.Has(keys::kRopeSections)) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat("key ",
                                               gguf::Quoted(reader.Full(keys::kRopeSections)),
                                               ": positions in sections are not supported"));
}

absl::Status ReadHeads(const MetadataReader& reader, ModelSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(spec.num_heads, reader.Size(keys::kHeadCount));
  spec.num_kv_heads = spec.num_heads;
  if (reader.Has(keys::kHeadCountKv)) {
    // ReadGroups reads those of the other layers.
    TANDEM_ASSIGN_OR_RETURN(const auto kv_heads, reader.SizeList(keys::kHeadCountKv));
    spec.num_kv_heads = kv_heads.front();
  }
  TANDEM_ASSIGN_OR_RETURN(spec.head_dim, reader.Size(keys::kKeyLength, 0));
  if (spec.head_dim == 0) {
    if (spec.hidden_size % spec.num_heads != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the ", spec.num_heads, " heads do not divide the embedding length ", spec.hidden_size));
    }
    spec.head_dim = spec.hidden_size / spec.num_heads;
  }
  TANDEM_ASSIGN_OR_RETURN(spec.value_dim, reader.Size(keys::kValueLength, spec.head_dim));
  return absl::OkStatus();
}

// 1 / sqrt(head_dim) unless the file or the table gives another value.
absl::Status ReadAttentionScale(const MetadataReader& reader, const Architecture& architecture,
                                ModelSpec& spec) {
  double dims = spec.head_dim;
  if (spec.num_layers == architecture.layers_with_hidden_scale)
    dims = static_cast<double>(spec.hidden_size) / spec.num_heads;
  spec.attention_scale = architecture.attention_scale > 0.0f
                             ? architecture.attention_scale
                             : static_cast<float>(1.0 / std::sqrt(dims));
  TANDEM_ASSIGN_OR_RETURN(const float stated, reader.NonNegative(keys::kAttentionScale));
  if (stated > 0.0f) spec.attention_scale = stated;
  spec.attention_softcap = architecture.attention_softcap;
  if (reader.Has(keys::kAttnSoftcap)) {
    TANDEM_ASSIGN_OR_RETURN(spec.attention_softcap, reader.NonNegative(keys::kAttnSoftcap));
  }
  spec.logit_softcap = architecture.logit_softcap;
  if (reader.Has(keys::kFinalSoftcap)) {
    TANDEM_ASSIGN_OR_RETURN(spec.logit_softcap, reader.NonNegative(keys::kFinalSoftcap));
  }
  return absl::OkStatus();
}

// The traits given by the table.
void TakeTraits(const Architecture& architecture, ModelSpec& spec) {
  spec.architecture = architecture.name;
  spec.norm = architecture.norm;
  spec.activation = architecture.activation;
  spec.gated_ffn = architecture.gated_ffn;
  spec.joint_qk_norm = architecture.joint_qk_norm;
  spec.post_norms = architecture.post_norms;
  spec.learned_positions = architecture.learned_positions;
  spec.value_norm = architecture.value_norm;
  spec.unrotated_period = architecture.unrotated_period;
  if (architecture.scaled_embedding)
    spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden_size));
}

// Draft layers are counted among the blocks, and are the last of them. Files may lack their
// tensors.
absl::Status ReadLayers(const MetadataReader& reader, ModelSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(const uint32_t blocks, reader.Size(keys::kBlockCount));
  TANDEM_ASSIGN_OR_RETURN(spec.num_draft_layers, reader.Count(keys::kNextnPredictLayers));
  if (spec.num_draft_layers >= blocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", gguf::Quoted(reader.Full(keys::kNextnPredictLayers)),
                     ": needed fewer than the ", blocks, " blocks, found ", spec.num_draft_layers));
  }
  spec.num_layers = blocks - spec.num_draft_layers;
  return absl::OkStatus();
}

// The first of the draft layers, if it is asked for.
absl::Status ReadDraftHead(const MetadataReader& reader, const Architecture& architecture,
                           const SpecOptions& options, ModelSpec& spec) {
  if (!options.load_draft_head) return absl::OkStatus();
  if (spec.num_draft_layers == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file has no draft head (--speculation mtp, --load-draft-head), needed key ",
        gguf::Quoted(reader.Full(keys::kNextnPredictLayers)), " above 0"));
  }
  const auto is_draft = [](const TensorRow& row) { return row.layers == Layers::kDraft; };
  if (std::none_of(architecture.tensors.begin(), architecture.tensors.end(), is_draft)) {
    return absl::UnimplementedError(
        absl::StrCat("draft heads (--speculation mtp, --load-draft-head) of architecture ",
                     Sv(architecture.name), " are not supported"));
  }
  spec.has_draft_head = true;
  return absl::OkStatus();
}

absl::Status ReadFfnSizes(const MetadataReader& reader, ModelSpec& spec) {
  if (!reader.Has(keys::kFeedForwardLength) && reader.Has(keys::kExpertFeedForwardLength)) {
    // Mixtures without dense layers need not have the dense layers' size.
    TANDEM_ASSIGN_OR_RETURN(spec.ffn_size, reader.EqualSize(keys::kExpertFeedForwardLength, 0));
    return absl::OkStatus();
  }
  TANDEM_ASSIGN_OR_RETURN(std::vector<uint32_t> sizes, reader.SizeList(keys::kFeedForwardLength));
  spec.ffn_size = *std::max_element(sizes.begin(), sizes.end());
  if (sizes.size() > 1) spec.layer_ffn_sizes = std::move(sizes);
  return absl::OkStatus();
}

// Per-layer embeddings, if the architecture has them.
absl::Status ReadLayerInputs(const MetadataReader& reader, const Architecture& architecture,
                             ModelSpec& spec) {
  const auto has = [](const TensorRow& row) { return row.feature == Feature::kLayerInputs; };
  if (std::none_of(architecture.tensors.begin(), architecture.tensors.end(), has)) {
    return absl::OkStatus();
  }
  TANDEM_ASSIGN_OR_RETURN(spec.layer_input_size, reader.Count(keys::kEmbeddingLengthPerLayer));
  if (spec.layer_input_size != 0) spec.features.Add(Feature::kLayerInputs);
  return absl::OkStatus();
}

absl::Status ReadSizes(const gguf::File& file, const MetadataReader& reader,
                       const Architecture& architecture, const SpecOptions& options,
                       ModelSpec& spec) {
  TANDEM_RETURN_IF_ERROR(ReadLayers(reader, spec));
  TANDEM_RETURN_IF_ERROR(ReadDraftHead(reader, architecture, options, spec));
  TANDEM_RETURN_IF_ERROR(ReadFfnSizes(reader, spec));
  TANDEM_ASSIGN_OR_RETURN(spec.context_length, reader.Size(keys::kContextLength));
  TANDEM_ASSIGN_OR_RETURN(const uint32_t pooling, reader.Count(keys::kPoolingType));
  if (pooling <= static_cast<uint32_t>(PoolingType::kLast)) {
    spec.pooling = static_cast<PoolingType>(pooling);
  }
  TANDEM_RETURN_IF_ERROR(ReadHeads(reader, spec));
  TANDEM_RETURN_IF_ERROR(ReadAttentionScale(reader, architecture, spec));
  TANDEM_ASSIGN_OR_RETURN(
      spec.norm_epsilon,
      reader.Float(spec.norm == NormKind::kLayer ? keys::kLayerNormEpsilon : keys::kRmsEpsilon));
  TANDEM_ASSIGN_OR_RETURN(spec.moe, ReadMixture(reader, architecture, spec.ffn_size));
  spec.norms_after_rope =
      architecture.norms_after_rope &&
      !(spec.moe.has_value() && spec.moe->num_experts == architecture.experts_without_norm);
  if (architecture.latent_attention) TANDEM_RETURN_IF_ERROR(ReadLatentAttention(reader, spec));
  TANDEM_RETURN_IF_ERROR(ReadLayerInputs(reader, architecture, spec));
  TANDEM_ASSIGN_OR_RETURN(const gguf::StringArray tokens,
                          file.metadata().GetStrings(keys::kTokens));
  if (tokens.size() > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", gguf::Quoted(keys::kTokens), " has ", tokens.size(), " tokens"));
  }
  spec.vocab_size = static_cast<uint32_t>(tokens.size());
  TANDEM_RETURN_IF_ERROR(spec.ValidateSizes());
  // Every layer has at least one tensor, so this bounds the work below by the file's size.
  if (spec.num_layers > file.tensors().size()) {
    return absl::InvalidArgumentError(absl::StrCat("the file states ", spec.num_layers,
                                                   " layers but has only ", file.tensors().size(),
                                                   " tensors"));
  }
  TANDEM_ASSIGN_OR_RETURN(spec.delta_net, ReadDeltaNet(reader, architecture, spec));
  return spec.ValidateSizes();
}

// The part of RoPE that needs the file's tensors.
absl::Status FinishRope(const gguf::File& file, const MetadataReader& reader,
                        const Architecture& architecture, const SpecOptions& options,
                        ModelSpec& spec) {
  if (spec.rope.rotary_dims == 0) return absl::OkStatus();
  const uint32_t context = options.max_model_len == 0 ? spec.context_length : options.max_model_len;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<float> factors, ReadRopeFactors(file, spec, context));
  FoldFrequencies(factors, spec.rope);
  TANDEM_RETURN_IF_ERROR(ApplyLogMultiplier(reader, architecture, spec));
  TANDEM_RETURN_IF_ERROR(ReadTemperature(reader, architecture, spec));
  TANDEM_ASSIGN_OR_RETURN(spec.window_rope, ReadWindowRope(file.metadata(), architecture, spec));
  // RoPE scaling set by the server extends the context length.
  if (options.rope_scale != 0.0f && spec.rope.factor > 1.0f) {
    const double reach = static_cast<double>(spec.context_length) * spec.rope.factor;
    spec.context_length = static_cast<uint32_t>(std::min(reach, double{1u << 28}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSpec> BuildSpec(const gguf::File& file, const SpecOptions& options) {
  if (file.tensors().empty()) {
    return absl::InvalidArgumentError(
        "the file has no tensors: a vocabulary alone can be tokenized with but not run");
  }
  const gguf::Metadata& metadata = file.metadata();
  TANDEM_ASSIGN_OR_RETURN(const Architecture* architecture, ReadArchitecture(metadata));
  const MetadataReader reader(metadata, architecture->name);
  TANDEM_RETURN_IF_ERROR(RefuseOtherMathematics(reader, *architecture));
  ModelSpec spec;
  TANDEM_ASSIGN_OR_RETURN(spec.hidden_size, reader.Size(keys::kEmbeddingLength));
  TakeTraits(*architecture, spec);
  TANDEM_ASSIGN_OR_RETURN(const auto name, metadata.FindString(keys::kName));
  spec.name = gguf::CleanName(name.value_or(""));
  spec.quantization = QuantizationName(file);
  TANDEM_RETURN_IF_ERROR(ReadSizes(file, reader, *architecture, options, spec));
  TANDEM_RETURN_IF_ERROR(ReadGroups(reader, *architecture, options, spec));
  TANDEM_RETURN_IF_ERROR(spec.ValidateGroups());
  TANDEM_ASSIGN_OR_RETURN(spec.rope, ReadRope(metadata, *architecture, spec, options));
  if (architecture->sectioned_rope) TANDEM_RETURN_IF_ERROR(CheckRopeSections(reader, spec.rope));
  TANDEM_RETURN_IF_ERROR(ProbeFeatures(file, *architecture, spec));
  AssumeScores(reader, spec);
  // Some files state a rank of queries that are not compressed.
  if (spec.mla.has_value() && !spec.Has(Feature::kQueryRank)) spec.mla->q_rank = 0;
  TANDEM_RETURN_IF_ERROR(CheckTensors(file, *architecture, spec));
  TANDEM_ASSIGN_OR_RETURN(spec.layer_output_scales, ReadLayerScales(file, *architecture, spec));
  TANDEM_RETURN_IF_ERROR(FinishRope(file, reader, *architecture, options, spec));
  TANDEM_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

}  // namespace tandem::model
