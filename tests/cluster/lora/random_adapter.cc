#include "tests/cluster/lora/random_adapter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/model/adapter.h"
#include "common/model/build_spec.h"
#include "tests/common/gguf/gguf_builder.h"

namespace tandem::testing {

std::vector<std::byte> RandomAdapter::File(const std::string& architecture) const {
  gguf::GgufBuilder file;
  file.AddString("general.type", "adapter")
      .AddString("general.architecture", architecture)
      .AddString("adapter.type", "lora")
      .AddFloat("adapter.lora.alpha", alpha);
  for (const auto& [tensor, a, b] : changes) {
    const std::string name(tensor->name);
    file.AddTensor(name + ".lora_a", {tensor->dims[0], rank}, tensor::Type::kF32,
                   std::as_bytes(std::span(a)));
    file.AddTensor(name + ".lora_b", {rank, tensor->dims[1]}, tensor::Type::kF32,
                   std::as_bytes(std::span(b)));
  }
  return file.Build();
}

RandomAdapter MakeRandomAdapter(const gguf::File& model, const model::ModelSpec& spec,
                                uint32_t rank, float alpha, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  RandomAdapter adapter{.rank = rank, .alpha = alpha, .changes = {}};
  for (const gguf::TensorInfo& tensor : model.tensors()) {
    if (tensor.num_dims != 2) continue;
    RandomChange change{&tensor, std::vector<float>(rank * tensor.dims[0]),
                        std::vector<float>(tensor.dims[1] * rank)};
    const float deviation = 1 / std::sqrt(static_cast<float>(tensor.dims[0]));
    for (float& value : change.a) value = normal(random) * deviation;
    for (float& value : change.b) value = normal(random) * 0.3f;
    const std::vector<std::byte> bytes =
        RandomAdapter{rank, alpha, {change}}.File(spec.architecture);
    auto alone = gguf::File::Parse(bytes);
    if (alone.ok() && model::ReadAdapter(*std::move(alone), spec).ok()) {
      adapter.changes.push_back(std::move(change));
    }
  }
  return adapter;
}

std::string WriteRandomAdapter(const std::string& model_path, uint32_t rank, uint32_t seed) {
  const auto model = gguf::File::Open(model_path);
  TANDEM_CHECK_OK(model.status());
  const auto spec = model::BuildSpec(*model, {});
  TANDEM_CHECK_OK(spec.status());
  const RandomAdapter adapter =
      MakeRandomAdapter(*model, *spec, rank, static_cast<float>(rank), seed);
  return WriteTestFile("adapter-" + std::to_string(seed) + ".gguf",
                       adapter.File(spec->architecture));
}

std::string WriteTestFile(const std::string& name, const std::vector<std::byte>& bytes) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace tandem::testing
