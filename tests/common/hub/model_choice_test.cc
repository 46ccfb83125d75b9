#include "common/hub/model_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace tandem::hub {
namespace {

using testing::HasSubstr;

std::vector<RepoModel> Models(const std::vector<std::string>& paths) {
  std::vector<RepoFile> files;
  for (const std::string& path : paths) {
    files.push_back({.path = path, .content = {.size_bytes = 1 << 20}});
  }
  return GroupModels(std::move(files));
}

TEST(QuantizationTest, NamesAsTheyOccur) {
  const std::pair<const char*, const char*> names[] = {
      {"Qwen2.5-0.5B-Instruct-Q4_K_M.gguf", "Q4_K_M"},
      {"llama-2-7b-chat.Q5_0.gguf", "Q5_0"},
      {"qwen2.5-0.5b-instruct-q4_k_m.gguf", "Q4_K_M"},
      {"Phi-3-mini-4k-instruct-fp16.gguf", "FP16"},
      {"model.i1-IQ3_XXS.gguf", "IQ3_XXS"},
      {"DeepSeek-V3-UD-Q2_K_XL/DeepSeek-V3-UD-Q2_K_XL-00001-of-00005.gguf", "UD-Q2_K_XL"},
      {"gpt-oss-20b-mxfp4.gguf", "MXFP4"},
      {"Q8_0/model-BF16.gguf", "BF16"},
      {"x-TQ1_0.gguf", "TQ1_0"},
      {"Llama-Q4_0-imat.gguf", "Q4_0"},
      {"Q8_0/model.gguf", ""},
      {"Qwen3-8B.gguf", ""},
      {"Qx-Quant.gguf", ""}};
  for (const auto& [path, quantization] : names) EXPECT_EQ(QuantizationOf(path), quantization);
}

TEST(ModelChoiceTest, GroupsSplitModels) {
  const auto models = Models({"m-Q8_0-00002-of-00002.gguf", "a.gguf", "m-Q8_0-00001-of-00002.gguf",
                              "m-Q8_0-00001-of-00003.gguf"});
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].path, "a.gguf");
  EXPECT_EQ(models[1].path, "m-Q8_0-00001-of-00002.gguf");
  EXPECT_EQ(models[1].files[1].path, "m-Q8_0-00002-of-00002.gguf");
  EXPECT_EQ(models[1].num_missing, 0u);
  EXPECT_EQ(models[1].size_bytes(), 2u << 20);
  EXPECT_EQ(models[2].num_missing, 2u);
  EXPECT_EQ(models[2].first_missing, "m-Q8_0-00002-of-00003.gguf");
}

TEST(ModelChoiceTest, TheOnlyOneElseTheDefault) {
  EXPECT_EQ(ChooseModel(Models({"a-F16.gguf"}), "")->path, "a-F16.gguf");
  EXPECT_EQ(ChooseModel(Models({"a-F16.gguf", "a-q4_k_m.gguf"}), "")->path, "a-q4_k_m.gguf");
  EXPECT_EQ(ChooseModel(Models({"a-F16.gguf", "a-Q8_0.gguf"}), "").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ChooseModel({}, "").status().code(), absl::StatusCode::kNotFound);
}

TEST(ModelChoiceTest, ByQuantisationOrPath) {
  const auto models = Models({"a-Q8_0.gguf", "d/b-Q8_0.gguf", "a-Q4_0.gguf"});
  EXPECT_EQ(ChooseModel(models, "q4_0")->path, "a-Q4_0.gguf");
  EXPECT_EQ(ChooseModel(models, "b-Q8_0.gguf")->path, "d/b-Q8_0.gguf");
  EXPECT_EQ(ChooseModel(models, "d/b-Q8_0.gguf")->path, "d/b-Q8_0.gguf");
  const absl::Status several = ChooseModel(models, "Q8_0").status();
  EXPECT_EQ(several.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(several.message()),
              HasSubstr("Q8_0: a-Q8_0.gguf (1 MiB), Q8_0: d/b-Q8_0.gguf (1 MiB)"));
  const absl::Status none = ChooseModel(models, "Q8").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()), HasSubstr("a-Q4_0.gguf"));
}

TEST(ModelChoiceTest, LongListsAreCut) {
  std::vector<std::string> paths;
  for (int i = 0; i < 100; ++i) paths.push_back("m" + std::to_string(i) + ".gguf");
  const absl::Status status = ChooseModel(Models(paths), "").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(", and 60 more"));
}

TEST(ModelChoiceTest, AMissingPart) {
  const absl::Status status =
      ChooseModel(Models({"m-00001-of-00002.gguf"}), "m-00001-of-00002.gguf").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1 of its 2 files: m-00002-of-00002.gguf"));
}

}  // namespace
}  // namespace tandem::hub
