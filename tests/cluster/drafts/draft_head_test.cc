// A model's own draft head on real workers: answers are those without it, to the token. The file is
// edited so that what its head guesses is right, or right now and then.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/gguf/file.h"
#include "tests/cluster/drafts/answers.h"
#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"

namespace tandem::testing {
namespace {

constexpr char kModel[] = "arch/glm4moe-mtp/model.gguf";

// The bytes of a file with F32 tensors, to be changed.
class EditedModel {
 public:
  explicit EditedModel(const std::string& path) : file_(gguf::File::Open(path).value()) {
    const auto bytes = file_.parts().front().bytes;
    bytes_.assign(bytes.begin(), bytes.end());
  }

  const gguf::File& file() const { return file_; }
  std::span<float> Values(std::string_view name) {
    const gguf::TensorInfo* const tensor = file_.FindTensor(name);
    EXPECT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->type, tensor::Type::kF32);
    const auto at = tensor->data - file_.parts().front().bytes.data();
    return {reinterpret_cast<float*>(bytes_.data() + at), tensor->values};
  }
  void Copy(std::string_view from, std::string_view to) {
    std::ranges::copy(Values(from), Values(to).begin());
  }
  std::string Write(const std::string& name) const {
    std::string path = ::testing::TempDir() + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()),
               static_cast<std::streamsize>(bytes_.size()));
    return path;
  }

 private:
  const gguf::File file_;
  std::vector<std::byte> bytes_;
};

// Layers add nothing, so the model draws by its last token alone, and the head sees the embedding
// of that token and `of_state` times the state before it, both normed: with 0 it guesses what the
// model draws at temperature 0.
std::string WriteModel(float of_state) {
  EditedModel model(GoldenPath(kModel));
  for (const gguf::TensorInfo& tensor : model.file().tensors()) {
    const std::string_view name = tensor.name;
    if (name.find("attn_output.") != name.npos || name.find("ffn_down") != name.npos) {
      std::ranges::fill(model.Values(name), 0.0f);
    }
  }
  const std::string head = "blk.2.nextn.";
  std::ranges::fill(model.Values(head + "enorm.weight"), 1.0f);
  std::ranges::fill(model.Values(head + "hnorm.weight"), 1.0f);
  model.Copy("output_norm.weight", head + "shared_head_norm.weight");
  model.Copy("output.weight", head + "shared_head_head.weight");
  model.Copy("token_embd.weight", head + "embed_tokens.weight");
  const auto projection = model.Values(head + "eh_proj.weight");
  const size_t hidden = model.Values("output_norm.weight").size();
  std::ranges::fill(projection, 0.0f);
  for (size_t i = 0; i < hidden; ++i) {
    projection[i * 2 * hidden + i] = 1.0f;
    projection[i * 2 * hidden + hidden + i] = of_state;
  }
  return model.Write("head-" + std::to_string(of_state) + ".gguf");
}

config::ServerConfig With(config::ServerConfig config) {
  config.scheduling.speculation = config::Speculation::kMtp;
  config::Complete(config);
  return config;
}

config::ServerConfig Tiny(config::ServerConfig config) {
  config.worker.cache.block_size = 8;
  config.worker.cache.num_kv_blocks = 24;
  config.scheduling.chunked_prefill_size = 7;
  return config;
}

class RightHeadTest : public ::testing::TestWithParam<int> {};

TEST_P(RightHeadTest, IsNeverWrong) {
  const config::ServerConfig config = DraftTestConfig(WriteModel(0), GetParam());
  for (const bool at_once : {false, true}) {
    const Answers plain = AskAll(config, 0, 3, at_once);
    const Answers run = AskAll(With(config), 0, 3, at_once);
    EXPECT_EQ(run.tokens, plain.tokens);
    EXPECT_GT(run.stats.drafts, 20);
    EXPECT_EQ(run.stats.accepted_drafts, run.stats.drafts);
    EXPECT_LT(run.stats.steps, plain.stats.steps);
    EXPECT_EQ(AskAll(Tiny(With(config)), 0, 3, at_once).tokens, plain.tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RightHeadTest, ::testing::Values(1, 2),
                         [](const auto& param) { return "tp" + std::to_string(param.param); });

// How much of the state the edited head sees, or the file as it is; temperature.
struct Guesses {
  const char* name;
  std::optional<float> of_state;
  float temperature;
};

void PrintTo(const Guesses& guesses, std::ostream* out) { *out << guesses.name; }

class HeadTest : public ::testing::TestWithParam<Guesses> {};

TEST_P(HeadTest, ChangesNoAnswer) {
  const auto& [name, of_state, temperature] = GetParam();
  const std::string path = of_state.has_value() ? WriteModel(*of_state) : GoldenPath(kModel);
  for (const int ranks : {1, 2}) {
    const config::ServerConfig config = DraftTestConfig(path, ranks);
    const Answers plain = AskAll(config, temperature, 4, /*at_once=*/true);
    const Answers run = AskAll(With(config), temperature, 4, /*at_once=*/true);
    EXPECT_EQ(run.tokens, plain.tokens);
    if (of_state.has_value()) {
      EXPECT_GT(run.stats.accepted_drafts, 0);
      EXPECT_LT(run.stats.accepted_drafts, run.stats.drafts);
    }
    EXPECT_EQ(AskAll(Tiny(With(config)), temperature, 4, /*at_once=*/true).tokens, plain.tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Guesses, HeadTest,
                         ::testing::Values(Guesses{"OfTheFile", std::nullopt, 0.0f},
                                           Guesses{"OfTheFileAtRandom", std::nullopt, 0.9f},
                                           Guesses{"OfTokensAndStates", 0.5f, 0.0f},
                                           Guesses{"OfTokensAtRandom", 0.0f, 0.2f}),
                         [](const auto& param) { return param.param.name; });

TEST(DraftHeadTest, AModelWithRecurrentLayersIsRefused) {
  const auto driver =
      EngineDriver::Start(With(DraftTestConfig(GoldenPath("arch/qwen35-mtp/model.gguf"))));
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().message(),
            "--speculation mtp: the model has recurrent layers, whose state can't be taken back to "
            "before a wrong guess");
}

TEST(DraftHeadTest, AFileWithoutOneIsRefused) {
  const auto driver =
      EngineDriver::Start(With(DraftTestConfig(GoldenPath("arch/llama/model.gguf"))));
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.status().message().find("the file has no draft head"), std::string::npos)
      << driver.status();
}

}  // namespace
}  // namespace tandem::testing
