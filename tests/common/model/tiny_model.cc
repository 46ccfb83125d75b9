#include "tests/common/model/tiny_model.h"

#include <algorithm>
#include <random>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace tandem::model {
namespace {

// Only the sizes that shapes are made of; BuildSpec is what tests look at.
ModelSpec SizesOf(const TinyModel& model) {
  ModelSpec spec;
  spec.num_layers = model.layers - (model.draft_head ? 1 : 0);
  spec.hidden_size = model.hidden;
  spec.num_heads = model.heads;
  spec.num_kv_heads = model.kv_heads;
  spec.head_dim = spec.value_dim = model.head_dim;
  spec.ffn_size = model.ffn;
  spec.vocab_size = model.vocab;
  spec.rope.rotary_dims = model.head_dim;
  if (model.qkv_bias) spec.features.Add(Feature::kQkvBias);
  if (model.output_bias) spec.features.Add(Feature::kOutputBias);
  if (model.qk_norm) spec.features.Add(Feature::kQkNorm);
  if (!model.tied) spec.features.Add(Feature::kUntiedHead);
  if (!model.rope_factors.empty()) spec.features.Add(Feature::kRopeFactors);
  return spec;
}

void AddKeys(const TinyModel& model, gguf::GgufBuilder& builder) {
  const auto add = [&](const std::string& key, uint32_t value) {
    if (std::count(model.skip_keys.begin(), model.skip_keys.end(), key) != 0) return;
    builder.AddUint32(absl::StrCat(model.architecture, ".", key), value);
  };
  builder.AddString("general.architecture", model.architecture);
  add("context_length", model.context);
  add("embedding_length", model.hidden);
  add("block_count", model.layers);
  if (model.draft_head) add("nextn_predict_layers", 1);
  add("feed_forward_length", model.ffn);
  add("attention.head_count", model.heads);
  add("attention.head_count_kv", model.kv_heads);
  add("attention.key_length", model.head_dim);
  add("attention.value_length", model.head_dim);
  if (std::count(model.skip_keys.begin(), model.skip_keys.end(),
                 "attention.layer_norm_rms_epsilon") == 0) {
    builder.AddFloat(absl::StrCat(model.architecture, ".attention.layer_norm_rms_epsilon"), 1e-5f);
  }
  std::vector<std::string> tokens;
  for (uint32_t i = 0; i < model.vocab; ++i) {
    tokens.push_back(model.other_token == i ? "other" : absl::StrCat("t", i));
  }
  builder.AddStrings("tokenizer.ggml.tokens", tokens);
  model.more_keys(builder);
}

std::vector<std::byte> RandomBytes(size_t size, std::mt19937_64& random) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  return bytes;
}

}  // namespace

std::vector<std::byte> TinyModel::Build() const {
  gguf::GgufBuilder builder;
  AddKeys(*this, builder);
  const ModelSpec spec = SizesOf(*this);
  const Architecture* table = FindArchitecture(architecture);
  TANDEM_CHECK(table != nullptr) << architecture;
  std::mt19937_64 random(7);
  for (const TensorRow& row : table->tensors) {
    for (uint32_t layer = 0; layer < (row.per_layer() ? layers : 1); ++layer) {
      if (!Applies(spec, row, layer)) continue;
      const std::string name = TensorName(row, static_cast<int>(layer));
      if (skip(name)) continue;
      const uint64_t rows = SizeOf(spec, row.rows);
      const uint64_t cols = SizeOf(spec, row.cols);
      const bool is_vector = rows == 1;
      const bool is_blocks = cols % tensor::Traits(vector_type).block_values == 0;
      const tensor::Type of_vector = is_blocks ? vector_type : tensor::Type::kF32;
      const tensor::Type type = is_vector ? of_vector : matrix_type;
      const std::vector<uint64_t> dims =
          is_vector ? std::vector<uint64_t>{cols} : std::vector<uint64_t>{cols, rows};
      if (row.role == Role::kRopeFactors) {
        builder.AddTensor(name, {rope_factors.size()}, type,
                          std::as_bytes(std::span(rope_factors)));
      } else {
        builder.AddTensor(name, dims, type,
                          RandomBytes(rows * tensor::RowBytes(type, cols), random));
      }
    }
  }
  more_tensors(builder);
  return builder.Build();
}

BuiltModel BuildTiny(const TinyModel& model) {
  std::vector<std::byte> bytes = model.Build();
  auto file = gguf::File::Parse(bytes);
  TANDEM_CHECK_OK(file.status());
  return {std::move(bytes), *std::move(file)};
}

}  // namespace tandem::model
