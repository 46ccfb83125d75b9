#include "common/model/build_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"
#include "common/tensor/dequantize.h"

namespace tandem::model {
namespace {

namespace keys = gguf::keys;

absl::StatusOr<float> Number(const gguf::Metadata& metadata, std::string_view key, float otherwise,
                             float above, float at_most) {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<float> found, metadata.FindFloat(key));
  const float value = found.value_or(otherwise);
  if (value > above && value <= at_most) return value;  // false for NaN
  return absl::InvalidArgumentError(absl::StrCat("key ", gguf::Quoted(key),
                                                 ": needed a number above ", above, " and at most ",
                                                 at_most, ", found ", value));
}

absl::StatusOr<RopeScalingKind> ScalingKind(std::string_view key,
                                            std::optional<std::string_view> name, bool has_factor) {
  // Files older than the key "type" have only a factor, which means linear scaling.
  if (!name.has_value()) return has_factor ? RopeScalingKind::kLinear : RopeScalingKind::kNone;
  for (const RopeScalingKind kind :
       {RopeScalingKind::kNone, RopeScalingKind::kLinear, RopeScalingKind::kYarn}) {
    if (*name == Name(kind)) return kind;
  }
  // Long-rope is given by its factor tensors.
  if (*name == "longrope") return RopeScalingKind::kNone;
  return absl::UnimplementedError(absl::StrCat("key ", gguf::Quoted(key),
                                               ": needed none, linear, yarn or longrope, found ",
                                               gguf::Quoted(*name)));
}

// The server's options override the file.
absl::Status Override(const SpecOptions& options, RopeSpec& rope) {
  if (options.rope_scaling.has_value()) rope.scaling = *options.rope_scaling;
  if (options.rope_scale != 0.0f) {
    if (!(options.rope_scale > 0.0f && options.rope_scale <= 1e6f)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rope scale: needed a number above 0 and at most 1000000, found ", options.rope_scale));
    }
    rope.factor = options.rope_scale;
    // A factor without a type means linear scaling, as in files.
    if (rope.scaling == RopeScalingKind::kNone && !options.rope_scaling.has_value())
      rope.scaling = RopeScalingKind::kLinear;
  }
  if (rope.scaling == RopeScalingKind::kNone) rope.factor = 1.0f;
  return absl::OkStatus();
}

absl::Status ReadScaling(const gguf::Metadata& metadata, std::string_view architecture,
                         const SpecOptions& options, RopeSpec& rope) {
  const auto key = [&](std::string_view pattern) { return gguf::KeyFor(pattern, architecture); };
  std::string factor_key = key(keys::kRopeScalingFactor);
  if (!metadata.Has(factor_key)) {
    const std::string old_key = key(keys::kRopeScaleLinear);
    if (metadata.Has(old_key)) factor_key = old_key;
  }
  const std::string type_key = key(keys::kRopeScalingType);
  TANDEM_ASSIGN_OR_RETURN(const auto type_name, metadata.FindString(type_key));
  TANDEM_ASSIGN_OR_RETURN(rope.scaling, ScalingKind(type_key, type_name, metadata.Has(factor_key)));
  TANDEM_ASSIGN_OR_RETURN(const float factor, Number(metadata, factor_key, 1.0f, 0.0f, 1e6f));
  rope.factor = factor;
  TANDEM_RETURN_IF_ERROR(Override(options, rope));
  TANDEM_ASSIGN_OR_RETURN(rope.magnitude,
                          Number(metadata, key(keys::kRopeScalingAttnFactor), 1.0f, 0.0f, 1e6f));
  TANDEM_ASSIGN_OR_RETURN(rope.beta_fast, Number(metadata, key(keys::kRopeScalingYarnBetaFast),
                                                 rope.beta_fast, 0.0f, 1e6f));
  TANDEM_ASSIGN_OR_RETURN(rope.beta_slow, Number(metadata, key(keys::kRopeScalingYarnBetaSlow),
                                                 rope.beta_slow, 0.0f, 1e6f));
  const std::string context_key = key(keys::kRopeScalingOriginalContext);
  TANDEM_ASSIGN_OR_RETURN(const auto original, metadata.FindUint32(context_key));
  if (original == 0u) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", gguf::Quoted(context_key), ": needed at least 1, found 0"));
  }
  rope.original_context = original.value_or(rope.original_context);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> RotaryDims(const gguf::Metadata& metadata, std::string_view key,
                                    uint32_t otherwise, uint32_t head_dim) {
  TANDEM_ASSIGN_OR_RETURN(const auto found, metadata.FindUint32(key));
  const uint32_t dims = found.value_or(otherwise);
  if (dims >= 2 && dims % 2 == 0 && dims <= head_dim) return dims;
  return absl::InvalidArgumentError(absl::StrCat("key ", gguf::Quoted(key),
                                                 ": needed an even number from 2 to the head size ",
                                                 head_dim, ", found ", dims));
}

// The (real-valued) index of the pair that rotates `rotations` times over the original context.
double PairOfRotations(const RopeSpec& rope, double rotations) {
  return rope.rotary_dims * std::log(rope.original_context / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(static_cast<double>(rope.base)));
}

}  // namespace

absl::StatusOr<RopeSpec> ReadRope(const gguf::Metadata& metadata, const Architecture& architecture,
                                  const ModelSpec& spec, const SpecOptions& options) {
  RopeSpec rope;
  rope.pairing = architecture.pairing;
  rope.original_context = spec.context_length;
  if (architecture.learned_positions) {
    if (!options.rope_scaling.has_value() && options.rope_scale == 0.0f) return rope;
    return absl::InvalidArgumentError(absl::StrCat(
        "architecture ", Sv(architecture.name), " has no rotary positions that could be scaled"));
  }
  TANDEM_ASSIGN_OR_RETURN(
      rope.rotary_dims,
      RotaryDims(metadata, gguf::KeyFor(keys::kRopeDimensionCount, architecture.name),
                 spec.head_dim, spec.head_dim));
  TANDEM_ASSIGN_OR_RETURN(
      rope.base, Number(metadata, gguf::KeyFor(keys::kRopeFreqBase, architecture.name), 10000.0f,
                        1.0f, 1e15f));
  TANDEM_RETURN_IF_ERROR(ReadScaling(metadata, architecture.name, options, rope));
  return rope;
}

absl::StatusOr<std::optional<RopeSpec>> ReadWindowRope(const gguf::Metadata& metadata,
                                                       const Architecture& architecture,
                                                       const ModelSpec& spec) {
  const std::string base_key = gguf::KeyFor(keys::kRopeFreqBaseSwa, architecture.name);
  if (architecture.window_rope_base == 0.0f) {
    if (architecture.window_period == 0) return std::nullopt;
    TANDEM_ASSIGN_OR_RETURN(const auto base, metadata.FindFloat(base_key));
    if (base.value_or(spec.rope.base) == spec.rope.base) return std::nullopt;
    return absl::UnimplementedError(absl::StrCat(
        "key ", gguf::Quoted(base_key), ": another base of layers with a window than the others' ",
        spec.rope.base, " is not supported with architecture ", Sv(architecture.name), ", found ",
        *base));
  }
  uint32_t head_dim = spec.head_dim;
  for (const KvGroupSpec& group : spec.kv_groups) {
    if (group.window_tokens != 0) head_dim = spec.HeadsOf(group).head_dim;
  }
  RopeSpec local = spec.rope;
  TANDEM_ASSIGN_OR_RETURN(local.base,
                          Number(metadata, base_key, architecture.window_rope_base, 1.0f, 1e15f));
  TANDEM_ASSIGN_OR_RETURN(
      local.rotary_dims,
      RotaryDims(metadata, gguf::KeyFor(keys::kRopeDimensionCountSwa, architecture.name),
                 std::min(local.rotary_dims, head_dim), head_dim));
  local.scaling = RopeScalingKind::kNone;
  local.factor = local.magnitude = 1.0f;
  FoldFrequencies({}, local);
  return local;
}

absl::Status CheckRopeSections(const MetadataReader& reader, const RopeSpec& rope) {
  constexpr uint32_t kSections = 4;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<uint32_t> sections,
                          reader.Counts(keys::kRopeSections, kSections));
  for (uint32_t pair = 0; pair < rope.rotary_dims / 2; ++pair) {
    if (pair < 3 * uint64_t{sections[pair % 3]}) continue;
    return absl::UnimplementedError(
        absl::StrCat("key ", gguf::Quoted(reader.Full(keys::kRopeSections)), ": sections ",
                     sections[0], ", ", sections[1], ", ", sections[2], " do not cover pair ", pair,
                     " of the ", rope.rotary_dims / 2, " rotated ones"));
  }
  return absl::OkStatus();
}

void FoldFrequencies(std::span<const float> factors, RopeSpec& rope) {
  const uint32_t pairs = rope.rotary_dims / 2;
  const bool yarn = rope.scaling == RopeScalingKind::kYarn;
  double low = 0;
  double high = 0;
  if (yarn) {
    low = std::max(0.0, std::floor(PairOfRotations(rope, rope.beta_fast)));
    high = std::min(rope.rotary_dims - 1.0, std::ceil(PairOfRotations(rope, rope.beta_slow)));
    rope.magnitude *= static_cast<float>(1.0 + 0.1 * std::log(static_cast<double>(rope.factor)));
  }
  double base = rope.base;
  double factor = rope.factor;
  if (rope.scaling == RopeScalingKind::kNtk && rope.rotary_dims > 2) {
    base *= std::pow(factor, rope.rotary_dims / (rope.rotary_dims - 2.0));
    factor = 1.0;
  }
  rope.inv_freq.resize(pairs);
  for (uint32_t i = 0; i < pairs; ++i) {
    double frequency = std::pow(base, -2.0 * i / rope.rotary_dims);
    if (!factors.empty()) frequency /= factors[i];
    const double scaled = frequency / factor;
    // The share of the unscaled frequency: 1 for fast pairs, 0 for slow ones, a linear ramp
    // between.
    const double keep =
        yarn ? 1.0 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0) : 0.0;
    rope.inv_freq[i] = static_cast<float>(scaled * (1.0 - keep) + frequency * keep);
  }
}

absl::StatusOr<std::vector<float>> ReadRopeFactors(const gguf::File& file, const ModelSpec& spec,
                                                   uint32_t context) {
  std::string_view name = "rope_freqs.weight";
  if (spec.Has(Feature::kLongRope)) {
    name = context > spec.rope.original_context ? "rope_factors_long.weight"
                                                : "rope_factors_short.weight";
  }
  const gguf::TensorInfo* tensor = file.FindTensor(name);
  if (tensor == nullptr) return std::vector<float>();
  std::vector<float> factors(tensor->values);
  tensor::Dequantize(tensor->type, tensor->data, factors.data(), factors.size());
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] > 0.0f && std::isfinite(factors[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat("tensor ", gguf::Quoted(name), ": value ", i,
                                                   ": needed a number above 0, found ",
                                                   factors[i]));
  }
  return factors;
}

absl::Status ApplyLogMultiplier(const MetadataReader& reader, const Architecture& architecture,
                                ModelSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(const float multiplier,
                          reader.NonNegative(keys::kRopeScalingYarnLogMultiplier));
  if (multiplier == 0.0f || spec.rope.scaling != RopeScalingKind::kYarn ||
      architecture.log_multiplier == LogMultiplier::kIgnored) {
    return absl::OkStatus();
  }
  const double log_factor = double{multiplier} * std::log(double{spec.rope.factor});
  if (architecture.log_multiplier == LogMultiplier::kDivides) {
    spec.rope.magnitude /= static_cast<float>(1.0 + 0.1 * log_factor);
    return absl::OkStatus();
  }
  const double scale = 1.0 + log_factor;
  spec.rope.magnitude = 1.0f;
  spec.attention_scale *= static_cast<float>(scale * scale);
  return absl::OkStatus();
}

absl::Status ReadTemperature(const MetadataReader& reader, const Architecture& architecture,
                             ModelSpec& spec) {
  TemperatureSpec temperature = architecture.temperature;
  if (reader.Has(keys::kTemperatureScale)) {
    TANDEM_ASSIGN_OR_RETURN(temperature.scale, reader.NonNegative(keys::kTemperatureScale));
  }
  if (temperature.scale == 0.0f) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const uint32_t length, reader.Count(keys::kTemperatureLength));
  if (length != 0) temperature.length = length;
  if (temperature.length == 0) temperature.length = spec.rope.original_context;
  spec.temperature = temperature;
  return absl::OkStatus();
}

}  // namespace tandem::model
