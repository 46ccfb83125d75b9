#include "common/model/info.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/model/fingerprint.h"
#include "common/model/group_text.h"
#include "common/model/human_bytes.h"
#include "common/model/kv_bytes.h"
#include "common/model/kv_cache_type.h"
#include "common/model/shard.h"
#include "common/model/slices.h"
#include "common/model/state_bytes.h"

namespace tandem::model {
namespace {

// Sizes with a reason if they are impossible; of the others only the possible ones are listed.
constexpr int kUsualSizes[] = {1, 2, 4, 8};

std::vector<TypeShare> CountTypes(const gguf::File& file) {
  std::map<tensor::Type, TypeShare> shares;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    TypeShare& share = shares[tensor.type];
    share.type = tensor.type;
    share.tensors += 1;
    share.parameters += tensor.values;
    share.bytes += tensor.bytes;
  }
  std::vector<TypeShare> sorted;
  for (const auto& entry : shares) sorted.push_back(entry.second);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  return sorted;
}

// Bytes of one sequence's cache on a rank: a windowed group keeps only its window, a recurrent
// layer its state.
uint64_t CacheBytes(const ModelSpec& spec, const ShardPlan& plan, tensor::Type kv_type,
                    uint64_t tokens) {
  uint64_t bytes = StateBytesPerSequence(spec, plan);
  for (const KvGroupSpec& group : spec.kv_groups) {
    const uint64_t kept =
        group.window_tokens == 0 ? tokens : std::min<uint64_t>(tokens, group.window_tokens);
    bytes += kept * KvBytesPerToken(spec, plan, group, kv_type);
  }
  return bytes;
}

// The tokens whose cache fits into `bytes`, as sequences of the model's whole context and one of
// the rest: each has its own windows.
uint64_t TokensThatFit(const ModelSpec& spec, const ShardPlan& plan, tensor::Type kv_type,
                       uint64_t bytes) {
  const uint64_t whole_sequence = CacheBytes(spec, plan, kv_type, spec.context_length);
  const uint64_t left = bytes % whole_sequence;
  uint64_t fits = 0, too_many = spec.context_length;
  while (too_many - fits > 1) {
    const uint64_t middle = fits + (too_many - fits) / 2;
    (CacheBytes(spec, plan, kv_type, middle) <= left ? fits : too_many) = middle;
  }
  return bytes / whole_sequence * spec.context_length + fits;
}

absl::StatusOr<ParallelInfo> DescribeSize(const gguf::File& file, const ModelSpec& spec, int size,
                                          const InfoQuery& query) {
  ParallelInfo info;
  info.size = size;
  for (int rank = 0; rank < size; ++rank) {
    const absl::StatusOr<ShardPlan> plan = MakeShardPlan(spec, rank, size);
    if (!plan.ok()) {
      info.why_not = std::string(plan.status().message());
      return info;
    }
    const absl::StatusOr<uint64_t> weights = WeightBytes(file, spec, *plan);
    if (absl::IsUnimplemented(weights.status())) {
      info.why_not = std::string(weights.status().message());
      return info;
    }
    TANDEM_ASSIGN_OR_RETURN(const uint64_t bytes, weights);
    info.weight_bytes_per_rank = std::max(info.weight_bytes_per_rank, bytes);
    info.heads_per_rank = std::max(info.heads_per_rank, plan->heads.size());
    for (const KvGroupSpec& group : spec.kv_groups) {
      info.kv_heads_per_rank =
          std::max(info.kv_heads_per_rank, KvHeadRange(spec, *plan, spec.HeadsOf(group)).size());
    }
    info.kv_bytes_per_token_per_rank =
        std::max(info.kv_bytes_per_token_per_rank, KvBytesPerToken(spec, *plan, query.kv_type));
    info.state_bytes_per_sequence_per_rank =
        std::max(info.state_bytes_per_sequence_per_rank, StateBytesPerSequence(spec, *plan));
    if (query.memory_bytes.has_value()) {
      const uint64_t memory = *query.memory_bytes;
      const uint64_t fits =
          bytes > memory ? 0 : TokensThatFit(spec, *plan, query.kv_type, memory - bytes);
      info.tokens_that_fit = std::min(info.tokens_that_fit.value_or(fits), fits);
    }
  }
  info.possible = true;
  return info;
}

std::string HumanCount(uint64_t count) {
  if (count >= 1'000'000'000)
    return absl::StrFormat("%.3g billion", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return absl::StrFormat("%.3g million", static_cast<double>(count) / 1e6);
  return absl::StrCat(count);
}

std::string FeatureText(const ModelSpec& spec) {
  std::string text;
  const auto add = [&](bool has, const char* what) {
    if (has) absl::StrAppend(&text, text.empty() ? "" : ", ", what);
  };
  add(!spec.Has(Feature::kUntiedHead), "tied embeddings");
  add(spec.Has(Feature::kQkvBias), "QKV bias");
  add(spec.Has(Feature::kOutputBias), "attention output bias");
  add(spec.Has(Feature::kQkNorm), "QK norm");
  add(spec.Has(Feature::kRopeFactors) || spec.Has(Feature::kLongRope), "rope factors");
  add(spec.Has(Feature::kSinks), "attention sinks");
  add(spec.learned_positions, "learned positions");
  add(spec.post_norms, "post-norms");
  add(spec.value_norm, "V norm");
  add(spec.layer_input_size > 0, "per-layer embeddings");
  add(!spec.layer_output_scales.empty(), "layer output scales");
  add(spec.temperature.has_value(), "query temperature");
  add(spec.attention_softcap > 0 || spec.logit_softcap > 0, "soft-capping");
  return text.empty() ? "none" : text;
}

std::string RopeText(const ModelSpec& spec) {
  const RopeSpec& rope = spec.rope;
  if (rope.rotary_dims == 0) return "none";
  std::string text = absl::StrFormat("base %g, %u dims, %s", rope.base, rope.rotary_dims,
                                     rope.pairing == RopePairing::kHalves ? "halves" : "adjacent");
  if (rope.scaling != RopeScalingKind::kNone) {
    absl::StrAppendFormat(&text, ", %s x %g over %u tokens", std::string(Name(rope.scaling)),
                          rope.factor, rope.original_context);
  }
  if (spec.unrotated_period > 0) {
    absl::StrAppendFormat(&text, ", none in 1 layer of %u", spec.unrotated_period);
  }
  return text;
}

// "1 layer", "2 layers".
std::string Count(uint64_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string MemoryText(const ParallelInfo& info, uint64_t memory) {
  if (info.weight_bytes_per_rank > memory) {
    return absl::StrCat("the weights alone are more than ", HumanBytes(memory));
  }
  return absl::StrCat(HumanBytes(memory), " hold them and ", Count(*info.tokens_that_fit, "token"));
}

void AppendParallel(const ParallelInfo& info, const InfoQuery& query, std::string& text) {
  if (!info.possible) {
    absl::StrAppendFormat(&text, "  TP %-2d no: %s\n", info.size, info.why_not);
    return;
  }
  absl::StrAppendFormat(
      &text,
      "  TP %-2d yes: per rank heads %u, KV heads %u, weights %s, %s KV cache %s per token%s%s\n",
      info.size, info.heads_per_rank, info.kv_heads_per_rank,
      HumanBytes(info.weight_bytes_per_rank), std::string(tensor::Name(query.kv_type)),
      HumanBytes(info.kv_bytes_per_token_per_rank),
      info.state_bytes_per_sequence_per_rank == 0
          ? ""
          : absl::StrCat(", state ", HumanBytes(info.state_bytes_per_sequence_per_rank),
                         " per sequence"),
      query.memory_bytes.has_value() ? absl::StrCat("; ", MemoryText(info, *query.memory_bytes))
                                     : "");
}

// "1536", or "1536 to 3072" where layers differ.
std::string FfnText(const ModelSpec& spec) {
  if (spec.layer_ffn_sizes.empty()) return absl::StrCat(spec.ffn_size);
  const auto& sizes = spec.layer_ffn_sizes;
  return absl::StrCat(*std::min_element(sizes.begin(), sizes.end()), " to ", spec.ffn_size);
}

// "60 of FFN size 1408, 4 per token, from layer 1 on, shared ones of FFN size 5632"
std::string ExpertText(const MoeSpec& moe) {
  std::string text = absl::StrFormat("%u of FFN size %u, %u per token", moe.num_experts,
                                     moe.ffn_size, moe.experts_per_token);
  if (moe.sigmoid) absl::StrAppend(&text, ", scored by sigmoids");
  if (moe.first_layer > 0) absl::StrAppend(&text, ", from layer ", moe.first_layer, " on");
  if (moe.beside_dense) absl::StrAppend(&text, ", beside the dense FFN");
  if (moe.period > 1) absl::StrAppend(&text, ", in 1 layer of ", moe.period);
  if (moe.shared_ffn_size > 0) {
    absl::StrAppend(&text, ", shared ones of FFN size ", moe.shared_ffn_size);
  }
  return text;
}

// What a sequence keeps: KV by group, and states.
void AppendSequence(const ModelInfo& info, std::string& text) {
  const ModelSpec& spec = info.spec;
  absl::StrAppendFormat(&text, "KV cache      %s per token in F16, %s in F32\n",
                        HumanBytes(info.kv_bytes_per_token_f16),
                        HumanBytes(info.kv_bytes_per_token_f32));
  for (size_t i = 0; i < spec.kv_groups.size(); ++i) {
    const KvGroupSpec& group = spec.kv_groups[i];
    absl::StrAppendFormat(&text, "  %s: %s per token in %s, %s\n", WindowText(group),
                          HumanBytes(info.group_bytes_per_token[i]),
                          std::string(tensor::Name(info.query.kv_type)), GroupLayersText(group));
  }
  if (info.state_bytes_per_sequence > 0) {
    absl::StrAppendFormat(&text, "state         %s per sequence in F32, %s\n",
                          HumanBytes(info.state_bytes_per_sequence),
                          LayersText(spec.delta_net->layers));
  }
  absl::StrAppendFormat(&text, "sequence      %s for %u tokens, KV cache in %s%s\n",
                        HumanBytes(info.sequence_bytes), spec.context_length,
                        std::string(tensor::Name(info.query.kv_type)),
                        info.state_bytes_per_sequence > 0 ? ", and state" : "");
}

// Bytes of uncompressed per-head K and V per token in F16.
uint64_t UnabsorbedBytesPerToken(const ModelSpec& spec) {
  const MlaSpec& mla = *spec.mla;
  const uint64_t head_values = uint64_t{mla.nope_dims} + mla.rope_dims + mla.value_dims;
  return spec.num_layers * spec.num_heads * head_values * 2;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeModel(const gguf::File& file, const ModelSpec& spec,
                                        const InfoQuery& query) {
  TANDEM_RETURN_IF_ERROR(CheckKvCacheType(spec, query.kv_type));
  ModelInfo info;
  info.spec = spec;
  info.gguf_version = file.version();
  info.files = file.parts().size();
  info.file_bytes = file.size_bytes();
  info.query = query;
  info.fingerprint = ModelFingerprint(file);
  info.types = CountTypes(file);
  for (const TypeShare& share : info.types) {
    info.tensors += share.tensors;
    info.parameters += share.parameters;
  }
  TANDEM_ASSIGN_OR_RETURN(const ShardPlan whole, MakeShardPlan(spec, 0, 1));
  info.kv_bytes_per_token_f16 = KvBytesPerToken(spec, whole, tensor::Type::kF16);
  info.kv_bytes_per_token_f32 = KvBytesPerToken(spec, whole, tensor::Type::kF32);
  for (const KvGroupSpec& group : spec.kv_groups) {
    info.group_bytes_per_token.push_back(KvBytesPerToken(spec, whole, group, query.kv_type));
  }
  info.state_bytes_per_sequence = StateBytesPerSequence(spec, whole);
  info.sequence_bytes = CacheBytes(spec, whole, query.kv_type, spec.context_length);
  if (spec.mla.has_value()) info.kv_bytes_per_token_unabsorbed = UnabsorbedBytesPerToken(spec);
  for (int size = 1; size <= kMaxRanks; ++size) {
    TANDEM_ASSIGN_OR_RETURN(const ParallelInfo parallel, DescribeSize(file, spec, size, query));
    const bool usual = std::count(std::begin(kUsualSizes), std::end(kUsualSizes), size) > 0;
    if (parallel.possible || usual) info.parallel.push_back(parallel);
  }
  return info;
}

std::string FormatInfo(const ModelInfo& info) {
  const ModelSpec& spec = info.spec;
  std::string text;
  absl::StrAppendFormat(&text, "name          %s\n", spec.name);
  absl::StrAppendFormat(&text, "architecture  %s\n", spec.architecture);
  absl::StrAppendFormat(&text, "parameters    %s in %u tensors\n", HumanCount(info.parameters),
                        info.tensors);
  absl::StrAppendFormat(&text, "file          %s%s, GGUF version %u\n", HumanBytes(info.file_bytes),
                        info.files > 1 ? absl::StrCat(" in ", info.files, " files") : "",
                        info.gguf_version);
  absl::StrAppendFormat(&text, "layers        %u of hidden size %u, FFN size %s%s\n",
                        spec.num_layers, spec.hidden_size, FfnText(spec),
                        spec.num_draft_layers == 0
                            ? ""
                            : absl::StrCat(", and ", Count(spec.num_draft_layers, "draft layer"),
                                           spec.has_draft_head ? ", 1 loaded as the draft head"
                                                               : " that is not run"));
  absl::StrAppendFormat(&text, "attention     %u heads over %s\n", spec.num_heads, HeadsText(spec));
  if (spec.moe.has_value()) {
    absl::StrAppendFormat(&text, "experts       %s\n", ExpertText(*spec.moe));
  }
  if (spec.mla.has_value()) {
    absl::StrAppendFormat(&text,
                          "latent cache  rows of %u values; the heads' own K and V would take %s "
                          "per token in F16\n",
                          spec.head_dim, HumanBytes(*info.kv_bytes_per_token_unabsorbed));
  }
  absl::StrAppendFormat(&text, "rope          %s\n", RopeText(spec));
  absl::StrAppendFormat(&text, "features      %s\n", FeatureText(spec));
  absl::StrAppendFormat(&text, "vocabulary    %u tokens\n", spec.vocab_size);
  absl::StrAppendFormat(&text, "context       %u tokens\n", spec.context_length);
  AppendSequence(info, text);
  absl::StrAppendFormat(&text, "quantisation  %s\n", spec.quantization);
  for (const TypeShare& share : info.types) {
    absl::StrAppendFormat(&text, "  %-6s %5u tensors, %s parameters, %s\n",
                          std::string(tensor::Name(share.type)), share.tensors,
                          HumanCount(share.parameters), HumanBytes(share.bytes));
  }
  absl::StrAppend(&text, "tensor parallelism\n");
  for (const ParallelInfo& size : info.parallel) {
    AppendParallel(size, info.query, text);
  }
  return text;
}

}  // namespace tandem::model
