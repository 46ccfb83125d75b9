#include "tests/worker/step_bench/bench_model.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/keys.h"
#include "common/model/architecture.h"
#include "tests/common/gguf/gguf_builder.h"

namespace tandem::worker {
namespace {

using tensor::Type;

constexpr uint64_t kAlignment = 32;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Only the sizes that shapes are made of.
model::ModelSpec SizesOf(const BenchShape& shape) {
  model::ModelSpec spec;
  spec.num_layers = shape.layers;
  spec.hidden_size = shape.hidden;
  spec.num_heads = shape.heads;
  spec.num_kv_heads = shape.kv_heads;
  spec.head_dim = spec.value_dim = spec.rope.rotary_dims = shape.head_dim;
  spec.ffn_size = shape.ffn;
  spec.vocab_size = shape.vocab;
  if (shape.experts > 0) {
    spec.moe.emplace();
    spec.moe->num_experts = shape.experts;
    spec.moe->experts_per_token = shape.experts_chosen;
    spec.moe->ffn_size = shape.expert_ffn;
  }
  if (model::FindArchitecture(shape.architecture)->requires_qk_norm) {
    spec.features.Add(model::Feature::kQkNorm);
  }
  if (!shape.tied) spec.features.Add(model::Feature::kUntiedHead);
  return spec;
}

void AddKeys(const BenchShape& shape, gguf::GgufBuilder& builder) {
  namespace keys = gguf::keys;
  const auto add = [&](std::string_view key, uint32_t value) {
    builder.AddUint32(gguf::KeyFor(key, shape.architecture), value);
  };
  builder.AddString(keys::kArchitecture, shape.architecture);
  add(keys::kContextLength, shape.context);
  add(keys::kEmbeddingLength, shape.hidden);
  add(keys::kBlockCount, shape.layers);
  add(keys::kFeedForwardLength, shape.ffn);
  add(keys::kHeadCount, shape.heads);
  add(keys::kHeadCountKv, shape.kv_heads);
  add(keys::kKeyLength, shape.head_dim);
  add(keys::kValueLength, shape.head_dim);
  builder.AddFloat(gguf::KeyFor(keys::kRmsEpsilon, shape.architecture), 1e-6f);
  builder.AddFloat(gguf::KeyFor(keys::kRopeFreqBase, shape.architecture), 1e6f);
  if (shape.experts > 0) {
    add(keys::kExpertCount, shape.experts);
    add(keys::kExpertUsedCount, shape.experts_chosen);
    add(keys::kExpertFeedForwardLength, shape.expert_ffn);
  }
  std::vector<std::string> tokens;
  for (uint32_t i = 0; i < shape.vocab; ++i) tokens.push_back(absl::StrCat("t", i));
  builder.AddStrings(keys::kTokens, tokens);
}

Type TypeOf(const BenchShape& shape, model::Role role, uint32_t layer) {
  switch (role) {
    case model::Role::kRouter:
      return Type::kF32;
    case model::Role::kOutput:
      return shape.wide;
    case model::Role::kTokenEmbedding:
      return shape.tied ? shape.wide : shape.type;
    case model::Role::kAttnV:
    case model::Role::kFfnDown:
    case model::Role::kExpertDown:
      return layer % 2 == 0 ? shape.wide : shape.type;
    default:
      return shape.type;
  }
}

// One tensor of the file.
struct Part {
  model::Role role{};
  Type type{};
  uint64_t rows = 1, cols = 1, count = 1;
  uint64_t offset = 0;

  uint64_t bytes() const { return rows * count * tensor::RowBytes(type, cols); }
  bool is_vector() const { return rows == 1; }
};

void Count(const BenchShape& shape, const Part& part, BenchCost& cost) {
  if (part.is_vector()) return;
  if (part.role == model::Role::kTokenEmbedding && !shape.tied) return;
  const auto bytes = static_cast<double>(part.bytes());
  const double flops = 2.0 * static_cast<double>(part.rows * part.cols);
  if (part.count > 1) {
    cost.expert_bytes += bytes;
    cost.token_flops += flops * shape.experts_chosen;
    return;
  }
  cost.dense_bytes += bytes;
  const bool head = part.role == model::Role::kOutput || part.role == model::Role::kTokenEmbedding;
  if (!head) cost.token_flops += flops;
}

// Adds the directory; returns the tensors.
std::vector<Part> AddTensors(const BenchShape& shape, gguf::GgufBuilder& builder) {
  const model::ModelSpec spec = SizesOf(shape);
  std::vector<Part> parts;
  uint64_t offset = 0;
  for (const model::TensorRow& row : model::FindArchitecture(shape.architecture)->tensors) {
    for (uint32_t layer = 0; layer < (row.per_layer() ? shape.layers : 1); ++layer) {
      if (!model::Applies(spec, row, layer)) continue;
      Part part{.role = row.role,
                .rows = SizeOf(spec, row.rows),
                .cols = SizeOf(spec, row.cols),
                .count = SizeOf(spec, row.count),
                .offset = offset};
      part.type = part.is_vector() ? Type::kF32 : TypeOf(shape, row.role, layer);
      std::vector<uint64_t> dims = {part.cols};
      if (!part.is_vector()) dims.push_back(part.rows);
      if (part.count > 1) dims.push_back(part.count);
      builder.AddRow(model::TensorName(row, static_cast<int>(layer)), dims,
                     static_cast<uint32_t>(part.type), offset);
      offset += Aligned(part.bytes());
      parts.push_back(part);
    }
  }
  return parts;
}

bool Write(int file, std::span<const std::byte> bytes, uint64_t at) {
  return pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace

BenchShape Qwen3_0_6B() {
  return {.name = "Qwen3-0.6B",
          .architecture = "qwen3",
          .layers = 28,
          .hidden = 1024,
          .heads = 16,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 3072,
          .vocab = 151936,
          .context = 131072,
          .tied = true};
}

BenchShape Llama3_8B() {
  return {.name = "Llama-3.1-8B",
          .architecture = "llama",
          .layers = 32,
          .hidden = 4096,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 14336,
          .vocab = 128256,
          .context = 131072};
}

BenchShape Qwen3_30B_A3B() {
  return {.name = "Qwen3-30B-A3B",
          .architecture = "qwen3moe",
          .layers = 48,
          .hidden = 2048,
          .heads = 32,
          .kv_heads = 4,
          .head_dim = 128,
          .ffn = 6144,
          .vocab = 151936,
          .context = 40960,
          .experts = 128,
          .experts_chosen = 8,
          .expert_ffn = 768};
}

BenchShape ToyDense() {
  return {.name = "toy-dense",
          .architecture = "llama",
          .layers = 2,
          .hidden = 64,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 32,
          .ffn = 96,
          .vocab = 80,
          .context = 1024,
          .type = Type::kQ8_0,
          .wide = Type::kQ8_0};
}

BenchShape ToyMixture() {
  BenchShape shape = ToyDense();
  shape.name = "toy-mixture";
  shape.architecture = "qwen3moe";
  shape.experts = 4;
  shape.experts_chosen = 2;
  shape.expert_ffn = 64;
  shape.tied = true;
  return shape;
}

absl::StatusOr<BenchModel> BenchModel::Make(const BenchShape& shape) {
  gguf::GgufBuilder builder;
  AddKeys(shape, builder);
  const std::vector<Part> parts = AddTensors(shape, builder);
  BenchCost cost;
  for (const Part& part : parts) Count(shape, part, cost);
  if (shape.experts > 0) cost.expert_share = 1.0 * shape.experts_chosen / shape.experts;
  cost.kv_bytes = 2.0 * 2 * shape.layers * shape.kv_heads * shape.head_dim;

  const std::vector<std::byte> header = builder.Build();
  const uint64_t data = Aligned(header.size());
  const uint64_t size = data + parts.back().offset + Aligned(parts.back().bytes());
  BenchModel model(memfd_create(shape.name.c_str(), MFD_CLOEXEC), cost);
  bool written = model.file_ >= 0 && ftruncate(model.file_, static_cast<off_t>(size)) == 0 &&
                 Write(model.file_, header, 0);
  std::minstd_rand random(5);
  for (const Part& part : parts) {
    if (!part.is_vector()) continue;
    std::vector<float> values(part.cols);
    for (float& value : values) value = 0.95f + static_cast<float>(random() % 1000) * 1e-4f;
    written = written && Write(model.file_, std::as_bytes(std::span(values)), data + part.offset);
  }
  if (!written) return absl::ErrnoToStatus(errno, absl::StrCat("the file of ", shape.name));
  return model;
}

BenchModel::BenchModel(BenchModel&& other) noexcept
    : file_(std::exchange(other.file_, -1)), cost_(other.cost_) {}

BenchModel::~BenchModel() {
  if (file_ >= 0) close(file_);
}

std::string BenchModel::path() const { return absl::StrCat("/proc/self/fd/", file_); }

}  // namespace tandem::worker
