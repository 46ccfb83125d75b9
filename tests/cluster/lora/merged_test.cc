// A model with an adapter gives what the model gives into whose weights the adapter was merged: the
// matrices of each kind of layer, some of which share a tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/lora/random_adapter.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint32_t kRank = 5;
constexpr float kAlpha = 2.5f;

Bytes ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// W + alpha / r B A in place of W. REQUIRES: matrices are F32.
Bytes Merged(Bytes model, const std::byte* base, const RandomAdapter& adapter) {
  for (const auto& [tensor, a, b] : adapter.changes) {
    EXPECT_EQ(tensor->type, tensor::Type::kF32);
    const uint64_t cols = tensor->dims[0];
    for (uint64_t i = 0; i < tensor->values; ++i) {
      double sum = 0;
      for (uint32_t r = 0; r < kRank; ++r) {
        sum += double{b[i / cols * kRank + r]} * a[r * cols + i % cols];
      }
      std::byte* const at = model.data() + (tensor->data - base) + i * sizeof(float);
      float value = 0;
      std::memcpy(&value, at, sizeof(value));
      value = static_cast<float>(value + kAlpha / kRank * sum);
      std::memcpy(at, &value, sizeof(value));
    }
  }
  return model;
}

std::vector<std::vector<float>> LogitsOf(const config::ServerConfig& options, uint32_t adapter) {
  auto driver = WorkerDriver::Start(options);
  EXPECT_TRUE(driver.ok()) << driver.status();
  if (!driver.ok()) return {};
  (*driver)->adapter = adapter;
  auto logits = (*driver)->Prefill(RandomPrompt(3, 12, 64), {0, 5, 11}, 7);
  EXPECT_TRUE(logits.ok()) << logits.status();
  return logits.ok() ? *std::move(logits) : std::vector<std::vector<float>>();
}

struct Case {
  const char* name;
  size_t changes;  // tensors that can be changed
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class LoraMergedTest : public ::testing::TestWithParam<Case> {};

TEST_P(LoraMergedTest, IsWhatTheMergedModelGives) {
  const std::string path = GoldenPath("arch/" + std::string(GetParam().name) + "/model.gguf");
  const Bytes bytes = ReadBytes(path);
  const auto file = gguf::File::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto spec = model::BuildSpec(*file, {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  const RandomAdapter adapter = MakeRandomAdapter(*file, *spec, kRank, kAlpha, /*seed=*/7);
  EXPECT_EQ(adapter.changes.size(), GetParam().changes);

  config::ServerConfig merged =
      TestServerConfig(WriteTestFile("merged.gguf", Merged(bytes, bytes.data(), adapter)));
  merged.cluster.tensor_parallel_size = 2;
  config::ServerConfig adapted = merged;
  adapted.worker.model.path = path;
  adapted.worker.model.lora_modules = {
      {.name = "a", .path = WriteTestFile("adapter.gguf", adapter.File(spec->architecture))}};
  const auto wanted = LogitsOf(merged, 0);
  const auto found = LogitsOf(adapted, 1);
  const auto alone = LogitsOf(adapted, 0);
  ASSERT_EQ(found.size(), wanted.size());
  double difference = 0, change = 0;
  for (size_t row = 0; row < wanted.size(); ++row) {
    for (size_t i = 0; i < wanted[row].size(); ++i) {
      difference = std::max(difference, std::fabs(double{wanted[row][i]} - found[row][i]));
      change = std::max(change, std::fabs(double{wanted[row][i]} - alone[row][i]));
    }
  }
  EXPECT_LE(difference, 1e-3);
  EXPECT_GE(change, 0.1);
}

std::string NameOf(const ::testing::TestParamInfo<Case>& one) {
  std::string name = one.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, LoraMergedTest,
                         ::testing::Values(Case{"gemma3", 49}, Case{"minimax-m2", 12},
                                           Case{"gpt2", 12}, Case{"gpt-oss", 16},
                                           Case{"qwen35", 26}, Case{"phi3-partial-swa", 8},
                                           Case{"glm4moe", 15}, Case{"gemma4", 50}),
                         NameOf);

}  // namespace
}  // namespace tandem::testing
