// Models split over files: sound ones look like one file, and each kind of broken set is refused in
// one line that names the file.
#include "common/gguf/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "common/gguf/file.h"
#include "tests/common/gguf/gguf_builder.h"

namespace tandem::gguf {
namespace {

using testing::HasSubstr;

// The split keys of one file; a test changes a field to break it.
struct PartPlan {
  uint32_t number = 0;
  uint32_t count = 3;
  uint32_t num_tensors = 4;
  std::vector<std::string> tensors;
};

// Three files with tensors a; b and c; d. Every value of a tensor is its place in the alphabet.
std::vector<PartPlan> SoundSet() {
  return {{.number = 0, .tensors = {"a"}},
          {.number = 1, .tensors = {"b", "c"}},
          {.number = 2, .tensors = {"d"}}};
}

std::vector<std::byte> Build(const PartPlan& plan) {
  GgufBuilder builder;
  if (plan.number == 0) builder.AddString("general.name", plan.tensors.front());
  builder.Add("split.no", ValueType::kUint16, static_cast<uint16_t>(plan.number));
  builder.Add("split.count", ValueType::kUint16, static_cast<uint16_t>(plan.count));
  builder.Add("split.tensors.count", ValueType::kInt32, static_cast<int32_t>(plan.num_tensors));
  for (const std::string& name : plan.tensors) {
    builder.AddTensor(name, {8}, tensor::Type::kF32,
                      std::vector<std::byte>(32, static_cast<std::byte>(name[0] - 'a')));
  }
  return builder.Build();
}

void Write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

// A separate folder for each test.
class SplitTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "split_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(uint32_t number) const {
    return SplitPath{folder_ + "/m", 0, 3}.Sibling(number);
  }
  void WriteSet(const std::vector<PartPlan>& set) const {
    for (uint32_t i = 0; i < set.size(); ++i) Write(Path(i), Build(set[i]));
  }
  std::string Refusal(const std::string& path) const {
    const auto file = File::Open(path);
    if (file.ok()) return "";
    const std::string message(file.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  // The refusal of the sound set with one change.
  std::string RefusalAfter(const std::function<void(std::vector<PartPlan>&)>& change) const {
    std::vector<PartPlan> set = SoundSet();
    change(set);
    WriteSet(set);
    return Refusal(Path(0));
  }

  std::string folder_;
};

TEST_F(SplitTest, LooksLikeOneFile) {
  WriteSet(SoundSet());
  auto opened = File::Open(Path(0));
  ASSERT_TRUE(opened.ok()) << opened.status();
  const File file = std::move(*opened);
  EXPECT_EQ(*file.metadata().GetString("general.name"), "a");
  ASSERT_EQ(file.tensors().size(), 4u);
  for (const char* name : {"a", "b", "c", "d"}) {
    const TensorInfo* found = file.FindTensor(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->data[0], static_cast<std::byte>(*name - 'a'));
    EXPECT_EQ(found->data[31], static_cast<std::byte>(*name - 'a'));
  }
  ASSERT_EQ(file.parts().size(), 3u);
  EXPECT_EQ(file.parts()[1].name, "m-00002-of-00003.gguf");
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < 3; ++i) bytes += std::filesystem::file_size(Path(i));
  EXPECT_EQ(file.size_bytes(), bytes);
}

TEST_F(SplitTest, AFileOfOneIsNotSplit) {
  for (const uint32_t count : {0u, 1u}) {
    Write(folder_ + "/any name", Build({.count = count, .num_tensors = 1, .tensors = {"a"}}));
    EXPECT_EQ(Refusal(folder_ + "/any name"), "");
  }
}

TEST_F(SplitTest, ALaterFileNamesTheFirst) {
  WriteSet(SoundSet());
  EXPECT_EQ(Refusal(Path(1)),
            "this is file 2 of the 3 that the model is split over; open the first one, "
            "\"m-00001-of-00003.gguf\"");
}

TEST_F(SplitTest, AMissingFile) {
  WriteSet(SoundSet());
  std::filesystem::remove(Path(2));
  EXPECT_THAT(Refusal(Path(0)), HasSubstr("file 3 of 3, \"m-00003-of-00003.gguf\": cannot open"));
}

TEST_F(SplitTest, AFileUnderAnotherName) {
  const std::string other = folder_ + "/renamed.gguf";
  Write(other, Build(SoundSet()[0]));
  EXPECT_EQ(Refusal(other),
            "this is file 1 of the 3 that the model is split over, but its name does not end in "
            "\"-00001-of-00003.gguf\", so that the others cannot be found");
}

TEST_F(SplitTest, SwappedFiles) {
  EXPECT_EQ(RefusalAfter([](auto& set) { std::swap(set[1], set[2]); }),
            "file 2 of 3, \"m-00002-of-00003.gguf\": key \"split.no\": needed 1, found 2");
  EXPECT_THAT(RefusalAfter([](auto& set) { std::swap(set[0], set[1]); }),
              HasSubstr("this is file 2 of the 3"));
}

TEST_F(SplitTest, CountsThatDisagree) {
  EXPECT_EQ(RefusalAfter([](auto& set) { set[1].count = 4; }),
            "file 2 of 3, \"m-00002-of-00003.gguf\": key \"split.count\": needed 3, found 4");
  EXPECT_EQ(RefusalAfter([](auto& set) { set[1].count = 0; }),
            "file 2 of 3, \"m-00002-of-00003.gguf\": key \"split.count\": needed 3, found none: it "
            "is not split");
  EXPECT_EQ(RefusalAfter([](auto& set) { set[2].num_tensors = 5; }),
            "file 3 of 3, \"m-00003-of-00003.gguf\": key \"split.tensors.count\": needed 4, found "
            "5");
  EXPECT_EQ(RefusalAfter([](auto& set) {
              for (PartPlan& part : set) part.num_tensors = 5;
            }),
            "key \"split.tensors.count\" states 5 tensors, but the 3 files have 4");
  EXPECT_THAT(RefusalAfter([](auto& set) { set[0].number = 3; }),
              HasSubstr("key \"split.no\": needed less than the 3 of the files, found 3"));
}

TEST_F(SplitTest, ATensorInTwoFiles) {
  EXPECT_EQ(RefusalAfter([](auto& set) { set[2].tensors = {"b"}; }),
            "over the 3 files: tensor \"b\": occurs twice in the file");
}

TEST_F(SplitTest, ATruncatedFile) {
  WriteSet(SoundSet());
  std::filesystem::resize_file(Path(1), std::filesystem::file_size(Path(1)) - 1);
  EXPECT_THAT(Refusal(Path(0)),
              HasSubstr("file 2 of 3, \"m-00002-of-00003.gguf\": tensor \"c\": needs 32 bytes"));
  std::filesystem::resize_file(Path(1), 10);
  EXPECT_THAT(Refusal(Path(0)), HasSubstr("\"m-00002-of-00003.gguf\": the file ends inside"));
}

TEST_F(SplitTest, MissingKeys) {
  GgufBuilder builder;
  builder.AddUint32("split.count", 2).AddUint32("split.no", 0);
  Write(folder_ + "/m-00001-of-00002.gguf", builder.Build());
  EXPECT_EQ(Refusal(folder_ + "/m-00001-of-00002.gguf"),
            "key \"split.tensors.count\" is missing, but \"split.count\" is 2");
}

TEST_F(SplitTest, BytesOfOnePartAreIncomplete) {
  const std::vector<std::byte> bytes = Build(SoundSet()[0]);
  EXPECT_EQ(File::Parse(bytes).status().message(),
            "this is file 1 of the 3 that the model is split over, not all of it");
}

TEST(SplitPathTest, OnlyTheOneForm) {
  const auto path = SplitPath::Parse("/models/big-00002-of-00012.gguf");
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->prefix, "/models/big");
  EXPECT_EQ(path->number, 1u);
  EXPECT_EQ(path->count, 12u);
  EXPECT_EQ(path->Sibling(11), "/models/big-00012-of-00012.gguf");
  for (const char* other :
       {"", ".gguf", "m.gguf", "m-00001-of-00002.bin", "m-0001-of-00002.gguf",
        "m-00003-of-00002.gguf", "m-00000-of-00002.gguf", "m00001-of-00002.gguf",
        "m-00001of-00002.gguf", "00001-of-00002.gguf"}) {
    EXPECT_FALSE(SplitPath::Parse(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace tandem::gguf
