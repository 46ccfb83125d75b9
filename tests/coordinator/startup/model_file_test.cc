// What a server refuses of a model file, and so `tandem info`.
#include "coordinator/startup/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/model/build_spec.h"
#include "tests/common/gguf/gguf_builder.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::coordinator {
namespace {

using gguf::GgufBuilder;
using testing::HasSubstr;

using Keys = std::function<void(GgufBuilder&)>;

absl::Status Serve(const Keys& keys) {
  model::TinyModel tiny;
  tiny.more_keys = keys;
  const model::BuiltModel built = model::BuildTiny(tiny);
  EXPECT_TRUE(model::BuildSpec(built.file).ok());  // all of these fail by their tokenizer
  return ReadServedModel(built.file, {}).status();
}

void Write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// A model in two files; the last norm is in the second one. The path of the first.
std::string WriteSplitModel(const std::string& prefix) {
  constexpr std::string_view kLast = "output_norm.weight";
  model::TinyModel tiny;
  const size_t count = model::BuildTiny(tiny).file.tensors().size();
  const auto add_keys = [count](GgufBuilder& builder, uint16_t number) {
    builder.Add("split.no", gguf::ValueType::kUint16, number);
    builder.Add("split.count", gguf::ValueType::kUint16, uint16_t{2});
    builder.Add("split.tensors.count", gguf::ValueType::kInt32, static_cast<int32_t>(count));
  };
  tiny.skip = [&](const std::string& name) { return name == kLast; };
  tiny.more_keys = [&](GgufBuilder& builder) { add_keys(builder, 0); };
  Write(prefix + "-00001-of-00002.gguf", tiny.Build());
  GgufBuilder second;
  add_keys(second, 1);
  const std::vector<std::byte> norm(tiny.hidden * sizeof(float));
  second.AddTensor(kLast, {tiny.hidden}, tensor::Type::kF32, norm);
  Write(prefix + "-00002-of-00002.gguf", second.Build());
  return prefix + "-00001-of-00002.gguf";
}

void AddModel(GgufBuilder& builder) { builder.AddString("tokenizer.ggml.model", "llama"); }

TEST(ServedModelTest, AWholeModelIsServed) {
  const auto served = OpenServedModel({.path = "tests/golden/arch/llama/model.gguf"});
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->tokenizer->vocab_size(), static_cast<int32_t>(served->file.spec.vocab_size));
}

TEST(ModelFileTest, EveryFileOfASplitModelIsWatched) {
  const std::string prefix = testing::TempDir() + "/watched";
  const auto model = OpenModelFile({.path = WriteSplitModel(prefix)});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->Changes(), "");
  std::filesystem::resize_file(prefix + "-00002-of-00002.gguf", 64);
  EXPECT_THAT(model->Changes(), HasSubstr("watched-00002-of-00002.gguf was changed"));
}

TEST(ModelFileTest, SoIsItsDraftModel) {
  const std::string draft = testing::TempDir() + "/draft.gguf";
  Write(draft, model::TinyModel().Build());
  const std::string path = testing::TempDir() + "/model.gguf";
  Write(path, model::TinyModel().Build());
  const auto model = OpenModelFile({.path = path, .draft_path = draft});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_NE(model->draft, nullptr);
  EXPECT_EQ(model->Changes(), "");
  std::filesystem::resize_file(draft, 64);
  EXPECT_THAT(model->Changes(), HasSubstr("draft.gguf was changed"));
}

TEST(ModelFileTest, SoAreItsAdapters) {
  const std::string model_path = "tests/golden/arch/llama/model.gguf";
  const auto copy = [](const char* from, const std::string& name) {
    const std::string path = testing::TempDir() + "/" + name;
    std::filesystem::copy_file(from, path, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  };
  const std::string path = copy("tests/golden/lora/llama/adapter.gguf", "a.gguf");
  const auto open = [&](const std::string& adapter) {
    return OpenModelFile({.path = model_path, .lora_modules = {{"a", adapter}}});
  };
  const auto model = open(path);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->adapters.size(), 1u);
  EXPECT_EQ(model->adapters[0].module, (config::LoraModule{"a", path}));
  EXPECT_EQ(model->Changes(), "");

  // The same header, one other value.
  const std::string other = copy("tests/golden/lora/llama/adapter.gguf", "other.gguf");
  std::fstream(other, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-8, std::ios::end)
      .put(1);
  EXPECT_NE(open(other)->adapters_fingerprint, model->adapters_fingerprint);

  std::filesystem::create_directories(testing::TempDir() + "/a,b");
  const std::string comma = copy("tests/golden/lora/llama/few.gguf", "a,b/c.gguf");
  EXPECT_EQ(std::string(open(comma).status().message()),
            "--lora-modules: the path " + comma + " has a comma, which separates adapters");
  std::filesystem::resize_file(path, 64);
  EXPECT_THAT(model->Changes(), HasSubstr("a.gguf was changed"));
  EXPECT_THAT(std::string(open(path).status().message()), HasSubstr(path + ": "));
}

TEST(ServedModelTest, TokenizersThatCannotBeMadeAreRefused) {
  const auto message = [](const Keys& keys) { return std::string(Serve(keys).message()); };
  EXPECT_THAT(message([](GgufBuilder& b) { b.AddString("tokenizer.ggml.model", "bert"); }),
              HasSubstr("tokenizer model \"bert\" is not supported"));
  EXPECT_THAT(message([](GgufBuilder& b) {
                AddModel(b);
                b.AddString("tokenizer.ggml.token_type", "normal");
              }),
              HasSubstr("\"tokenizer.ggml.token_type\": needed an array of int32"));
  EXPECT_THAT(message([](GgufBuilder& b) {
                b.AddString("tokenizer.ggml.model", "gpt2");
                b.AddUint32("tokenizer.ggml.merges", 1);
              }),
              HasSubstr("\"tokenizer.ggml.merges\": needed an array of string"));
  EXPECT_THAT(message([](GgufBuilder& b) {
                AddModel(b);
                b.AddUint32("tokenizer.ggml.eos_token_id", 37);
              }),
              HasSubstr("the eos token id is 37, but there are only 37 tokens"));
}

TEST(ServedModelTest, AVocabularyAloneIsSaidToBeThat) {
  GgufBuilder builder;
  builder.AddString("general.architecture", "llama");
  AddModel(builder);
  builder.AddStrings("tokenizer.ggml.tokens", {"a", "b"});
  const std::vector<std::byte> bytes = builder.Build();
  const auto file = gguf::File::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(std::string(ReadServedModel(*file, {}).status().message()),
              HasSubstr("a vocabulary alone can be tokenized with but not run"));
}

}  // namespace
}  // namespace tandem::coordinator
