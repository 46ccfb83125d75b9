#include "tests/cluster/wide_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/gguf/file.h"
#include "common/model/architecture.h"
#include "common/model/build_spec.h"
#include "common/model/matrix_scales.h"
#include "common/model/tensor_row.h"
#include "common/tensor/blocks_of_64.h"
#include "common/tensor/dequantize.h"
#include "common/tensor/f16.h"
#include "tests/cluster/golden_cases.h"
#include "tests/common/gguf/gguf_builder.h"

namespace tandem::testing {
namespace {

using gguf::GgufBuilder;
using model::Role;
using tensor::Type;

constexpr uint32_t kWidth = 256;

// The sizes that are changed, by key.
std::map<std::string, uint32_t> NewSizes(const model::ModelSpec& spec) {
  std::map<std::string, uint32_t> sizes = {{"embedding_length", kWidth},
                                           {"feed_forward_length", 2 * kWidth},
                                           {"expert_feed_forward_length", kWidth},
                                           {"expert_shared_feed_forward_length", kWidth}};
  // Every expert for every token: rounded activations would turn a router's near ties.
  if (spec.moe.has_value()) sizes["expert_used_count"] = spec.moe->num_experts;
  if (spec.delta_net.has_value() && spec.delta_net->strided_heads) {
    // A rank has every other head: whole blocks of each.
    sizes["ssm.state_size"] = kWidth;
    sizes["ssm.inner_size"] = kWidth * spec.delta_net->value_heads;
  }
  return sizes;
}

model::ModelSpec Widened(model::ModelSpec spec) {
  spec.hidden_size = kWidth;
  spec.ffn_size = 2 * kWidth;
  spec.layer_ffn_sizes.clear();
  if (spec.moe.has_value()) {
    spec.moe->ffn_size = kWidth;
    if (spec.moe->shared_ffn_size != 0) spec.moe->shared_ffn_size = kWidth;
  }
  if (spec.delta_net.has_value() && spec.delta_net->strided_heads) {
    spec.delta_net->head_dim = kWidth;
  }
  return spec;
}

void CopyKeys(const gguf::File& file, const std::map<std::string, uint32_t>& sizes,
              const std::string& architecture, GgufBuilder& builder) {
  for (const auto& [key, value] : file.metadata().entries()) {
    const std::string name(key);
    const auto size = name.rfind(architecture + ".", 0) == 0
                          ? sizes.find(name.substr(architecture.size() + 1))
                          : sizes.end();
    if (size != sizes.end()) {
      builder.AddUint32(key, size->second);
    } else {
      builder.AddValue(key, value);
    }
  }
}

// Mean and deviation of a tensor's values.
std::pair<float, float> Distribution(Role role, uint64_t cols, uint32_t layers) {
  switch (role) {
    case Role::kAttnOutput:
    case Role::kDeltaOut:
    case Role::kFfnDown:
    case Role::kExpertDown:
    case Role::kSharedDown:  // the residual does not grow with the depth
      return {0.0f, 1.0f / std::sqrt(2.0f * static_cast<float>(layers * cols))};
    case Role::kDeltaDecayRate:
      return {-2.0f, 0.3f};
    case Role::kDeltaDecayBias:
      return {-2.0f, 0.5f};
    case Role::kDeltaConv:
      return {0.0f, 0.5f};
    case Role::kSelectionBias:
      return {0.0f, 0.05f};
    case Role::kTokenEmbedding:
    case Role::kOutput:  // logits of the golden models' size
      return {0.0f, 2.0f / std::sqrt(static_cast<float>(cols))};
    default:
      if (model::IsVector(role)) return {1.0f, 0.05f};
      return {0.0f, 1.0f / std::sqrt(static_cast<float>(cols))};
  }
}

Type TypeOf(const model::TensorRow& row, const model::Placement& place, Type type) {
  const bool plain = model::IsVector(row.role) || place.rows == 1 || row.role == Role::kRouter ||
                     row.role == Role::kDeltaDecay || row.role == Role::kDeltaWrite;
  if (plain || place.cols % 32 != 0) return Type::kF32;
  return place.cols % tensor::Traits(type).block_values == 0 ? type : Type::kQ8_0;
}

// Where a block has its scale, and the deviation of random blocks under a scale of 1.
struct BlockScale {
  size_t at;
  float deviation;
};
BlockScale ScaleOf(Type type) {
  switch (type) {
    case Type::kQ8_0:
      return {0, 73.9f};  // of a uniform byte
    case Type::kQ4_K:
      return {0, 256.0f};  // of a 6-bit scale times a nibble less a minimum
    case Type::kIQ1_S:
    case Type::kIQ1_M:
      return {0, 7.2f};
    case Type::kIQ2_XXS:
    case Type::kIQ2_XS:
    case Type::kIQ2_S:
      return {0, 55.5f};
    case Type::kIQ3_XXS:
    case Type::kIQ3_S:
      return {0, 141.0f};
    case Type::kTQ1_0:
      return {52, 0.8f};
    case Type::kTQ2_0:
      return {64, 1.2f};  // with scales of both signs
    case Type::kQ1_0:
      return {0, 1.0f};
    case Type::kQ2_0:
      return {0, 1.2f};
    default:
      TANDEM_CHECK(false) << tensor::Name(type);
      return {};
  }
}

// The scale of NVFP4 that is nearest to a value.
uint8_t NearestScale(float value) {
  tensor::BlockNVFP4 block{};
  const auto distance = [&](int byte) {
    block.d[0] = static_cast<uint8_t>(byte);
    return std::fabs(2 * block.Scale(0) - value);  // which is half of it
  };
  int nearest = 0;
  for (int byte = 1; byte < 127; ++byte) {
    if (distance(byte) < distance(nearest)) nearest = byte;
  }
  return static_cast<uint8_t>(nearest);
}

// Random blocks under scales that give values of the deviation.
class Blocks {
 public:
  explicit Blocks(uint32_t seed) : random_(seed) {}

  std::vector<std::byte> Draw(Type type, uint64_t values, std::pair<float, float> distribution) {
    const auto [mean, deviation] = distribution;
    if (type == Type::kF32) {
      std::normal_distribution<float> number(mean, deviation);
      std::vector<float> floats(values);
      for (float& value : floats) value = number(random_);
      const auto bytes = std::as_bytes(std::span(floats));
      return {bytes.begin(), bytes.end()};
    }
    std::vector<std::byte> bytes(tensor::RowBytes(type, values));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_() & 0xff);
    const size_t block = tensor::Traits(type).block_bytes;
    if (type == Type::kNVFP4) {
      const uint8_t scale = NearestScale(deviation / 2.93f);  // of random codes
      for (size_t at = 0; at < bytes.size(); at += block) {
        for (size_t group = 0; group < 4; ++group) {
          bytes[at + group] = static_cast<std::byte>(scale + random_() % 2);
        }
      }
      return bytes;
    }
    const BlockScale of = ScaleOf(type);
    for (size_t at = 0; at < bytes.size(); at += block) {
      const float scale = deviation / of.deviation * Sign();
      if (type == Type::kIQ1_M) {
        PutInPieces(scale, &bytes[at]);
        continue;
      }
      Put(scale, &bytes[at + of.at]);
      if (type == Type::kQ4_K) Put(7.5f * scale, &bytes[at + 2]);
    }
    return bytes;
  }

 private:
  float Sign() { return random_() % 2 == 0 ? 1.0f : -1.0f; }
  static void Put(float value, std::byte* to) {
    const uint16_t half = tensor::FloatToHalf(value);
    std::memcpy(to, &half, sizeof(half));
  }

  // To the top four bits of IQ1_M's scales.
  static void PutInPieces(float value, std::byte* block) {
    const uint16_t half = tensor::FloatToHalf(value);
    uint16_t scales[4];
    std::byte* const at = block + tensor::Traits(Type::kIQ1_M).block_bytes - sizeof(scales);
    std::memcpy(scales, at, sizeof(scales));
    for (int i = 0; i < 4; ++i) {
      scales[i] = static_cast<uint16_t>((scales[i] & 0xfff) | (half >> (4 * i) & 15) << 12);
    }
    std::memcpy(at, scales, sizeof(scales));
  }

  std::mt19937 random_;
};

// "blk.3.x.scale" of "blk.3.x.weight".
std::string NameOfScale(const std::string& tensor) {
  return tensor.substr(0, tensor.rfind('.')) + ".scale";
}

// Scales that all differ.
std::vector<float> SomeScales(uint64_t count, size_t seed) {
  std::vector<float> scales(count);
  for (size_t i = 0; i < count; ++i) {
    scales[i] = 0.75f + 0.031f * static_cast<float>((seed + i) % 17);
  }
  return scales;
}

// Adds a tensor to both files. `scales`: of its matrices; empty: none.
void AddBoth(const std::string& name, const std::vector<uint64_t>& dims, Type type,
             const std::vector<std::byte>& bytes, const std::vector<float>& scales,
             GgufBuilder& quantised, GgufBuilder& plain) {
  quantised.AddTensor(name, dims, type, bytes);
  uint64_t values = 1;
  for (const uint64_t dim : dims) values *= dim;
  std::vector<float> floats(values);
  tensor::Dequantize(type, bytes.data(), floats.data(), values);
  if (!scales.empty()) {
    quantised.AddTensor(NameOfScale(name), {scales.size()}, Type::kF32,
                        std::as_bytes(std::span(scales)));
    const uint64_t of_matrix = values / scales.size();
    for (uint64_t i = 0; i < values; ++i) floats[i] *= scales[i / of_matrix];
  }
  plain.AddTensor(name, dims, Type::kF32, std::as_bytes(std::span(floats)));
}

std::string Write(GgufBuilder& builder, const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name + ".gguf";
  const std::vector<std::byte> bytes = builder.Build();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace

WideModel WriteWideModel(const std::string& name, Type type) {
  const auto file = gguf::File::Open(ReadArchGolden(name).path);
  TANDEM_CHECK_OK(file.status());
  const auto golden = model::BuildSpec(*file);
  TANDEM_CHECK_OK(golden.status());
  const model::ModelSpec spec = Widened(*golden);
  GgufBuilder quantised, plain;
  for (GgufBuilder* builder : {&quantised, &plain}) {
    CopyKeys(*file, NewSizes(*golden), spec.architecture, *builder);
  }
  const model::Architecture& table = *model::FindArchitecture(spec.architecture);
  Blocks blocks(7);
  std::set<std::string> written;  // parts of one tensor have one name
  for (const model::TensorRow& row : table.tensors) {
    for (uint32_t layer = 0; layer < (row.per_layer() ? spec.num_layers : 1); ++layer) {
      const std::string tensor = TensorName(row, static_cast<int>(layer));
      if (!Applies(spec, row, layer) || !written.insert(tensor).second) continue;
      const model::Placement place = Place(spec, table.tensors, row, layer);
      std::vector<uint64_t> dims = {place.cols};
      if (place.rows > 1) dims.push_back(place.rows);
      if (place.count > 1) dims.push_back(place.count);
      if (row.role == Role::kRopeFactors) {
        const gguf::TensorInfo& factors = *file->FindTensor(tensor);
        AddBoth(tensor, dims, factors.type, {factors.data, factors.data + factors.bytes}, {},
                quantised, plain);
        continue;
      }
      const Type of_tensor = TypeOf(row, place, type);
      const auto scale = model::ParseTensorName(NameOfScale(tensor));
      const bool scaled = type == Type::kNVFP4 && tensor.ends_with(".weight") &&
                          model::FindScaledRow(table, scale) != nullptr;
      AddBoth(tensor, dims, of_tensor,
              blocks.Draw(of_tensor, place.rows * place.cols * place.count,
                          Distribution(row.role, place.cols, spec.num_layers)),
              scaled ? SomeScales(place.count, written.size()) : std::vector<float>(), quantised,
              plain);
    }
  }
  const std::string stem = name + "_" + std::string(tensor::Name(type));
  return {.quantised = Write(quantised, stem),
          .dequantised = Write(plain, stem + "_F32"),
          .num_layers = spec.num_layers};
}

}  // namespace tandem::testing
