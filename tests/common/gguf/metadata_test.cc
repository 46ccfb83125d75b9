#include "common/gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/gguf/file.h"
#include "tests/common/gguf/gguf_builder.h"

namespace tandem::gguf {
namespace {

using testing::ElementsAre;

class MetadataTest : public testing::Test {
 protected:
  // Keeps the bytes, for values are views into them.
  const Metadata& Read(GgufBuilder& builder) {
    bytes_ = builder.Build();
    auto file = File::Parse(bytes_);
    EXPECT_TRUE(file.ok()) << file.status();
    metadata_ = file->metadata();
    return metadata_;
  }

 private:
  std::vector<std::byte> bytes_;
  Metadata metadata_;
};

TEST_F(MetadataTest, IntegersOfEveryWidthCountWhereTheyFit) {
  GgufBuilder builder;
  builder.Add("u8", ValueType::kUint8, uint8_t{200}).Add("i8", ValueType::kInt8, int8_t{5});
  builder.Add("u16", ValueType::kUint16, uint16_t{60000}).Add("i16", ValueType::kInt16, int16_t{7});
  builder.Add("u32", ValueType::kUint32, uint32_t{4000000000});
  builder.Add("i32", ValueType::kInt32, int32_t{9});
  builder.Add("u64", ValueType::kUint64, uint64_t{1} << 40);
  builder.Add("i64", ValueType::kInt64, int64_t{11});
  builder.Add("negative", ValueType::kInt8, int8_t{-3});
  const Metadata& metadata = Read(builder);
  EXPECT_EQ(*metadata.GetUint32("u8"), 200u);
  EXPECT_EQ(*metadata.GetUint32("i8"), 5u);
  EXPECT_EQ(*metadata.GetUint32("u16"), 60000u);
  EXPECT_EQ(*metadata.GetUint32("i16"), 7u);
  EXPECT_EQ(*metadata.GetUint32("u32"), 4000000000u);
  EXPECT_EQ(*metadata.GetUint32("i32"), 9u);
  EXPECT_EQ(*metadata.GetUint64("u64"), uint64_t{1} << 40);
  EXPECT_EQ(*metadata.GetUint32("i64"), 11u);
  EXPECT_EQ(
      metadata.GetUint32("u64").status(),
      absl::InvalidArgumentError("key \"u64\": needed a number below 2^32, found 1099511627776"));
  EXPECT_EQ(
      metadata.GetUint32("negative").status(),
      absl::InvalidArgumentError("key \"negative\": needed a number of at least 0, found -3"));
}

TEST_F(MetadataTest, OtherTypesAreRefusedWithBothNames) {
  GgufBuilder builder;
  builder.AddString("text", "8").AddFloat("float", 2.0f).AddStrings("list", {"a"});
  const Metadata& metadata = Read(builder);
  EXPECT_EQ(metadata.GetUint32("text").status(),
            absl::InvalidArgumentError("key \"text\": needed an integer, found string"));
  EXPECT_EQ(metadata.GetUint32("float").status(),
            absl::InvalidArgumentError("key \"float\": needed an integer, found float32"));
  EXPECT_EQ(metadata.GetString("list").status(),
            absl::InvalidArgumentError("key \"list\": needed a string, found array of string"));
  EXPECT_EQ(metadata.GetFloats("list").status(),
            absl::InvalidArgumentError(
                "key \"list\": needed an array of float32, found array of string"));
  EXPECT_EQ(metadata.GetFloat("text").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(metadata.GetBool("float").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(metadata.GetStrings("text").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(metadata.GetInt32s("list").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MetadataTest, MissingKeysAreNotFoundOrEmpty) {
  GgufBuilder builder;
  builder.AddString("a", "x");
  const Metadata& metadata = Read(builder);
  EXPECT_EQ(metadata.GetUint32("b").status(), absl::NotFoundError("key \"b\" is missing"));
  EXPECT_EQ(*metadata.FindUint32("b"), std::nullopt);
  EXPECT_EQ(*metadata.FindFloat("b"), std::nullopt);
  EXPECT_EQ(*metadata.FindBool("b"), std::nullopt);
  EXPECT_EQ(*metadata.FindString("a"), "x");
  EXPECT_EQ(metadata.FindUint32("a").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MetadataTest, FloatsAndBools) {
  GgufBuilder builder;
  builder.AddFloat("f32", 1.5f).Add("f64", ValueType::kFloat64, 2.5);
  builder.AddFloat("nan", std::nanf(""));
  builder.Add("yes", ValueType::kBool, uint8_t{1}).Add("maybe", ValueType::kBool, uint8_t{2});
  const Metadata& metadata = Read(builder);
  EXPECT_EQ(*metadata.GetFloat("f32"), 1.5f);
  EXPECT_EQ(*metadata.GetFloat("f64"), 2.5f);
  EXPECT_TRUE(std::isnan(*metadata.GetFloat("nan")));
  EXPECT_TRUE(*metadata.GetBool("yes"));
  EXPECT_EQ(metadata.GetBool("maybe").status(),
            absl::InvalidArgumentError("key \"maybe\": needed a bool of 0 or 1, found 2"));
}

TEST_F(MetadataTest, ArraysAreReadInPlaceAtAnyAlignment) {
  for (const std::string padding : {"", "1", "12", "123"}) {
    GgufBuilder builder;
    builder.AddString("padding", padding);
    builder.AddStrings("words", {"", "one", std::string("\0x", 2)});
    ByteWriter floats;
    floats.Number(ValueType::kFloat32).Number(uint64_t{2}).Number(0.5f).Number(-2.0f);
    builder.AddRaw("floats", ValueType::kArray, floats.bytes());
    ByteWriter ints;
    ints.Number(ValueType::kInt32).Number(uint64_t{2}).Number(int32_t{-1}).Number(int32_t{7});
    builder.AddRaw("ints", ValueType::kArray, ints.bytes());
    builder.AddStrings("none", {});
    const Metadata& metadata = Read(builder);
    const StringArray words = *metadata.GetStrings("words");
    EXPECT_EQ(words.size(), 3u);
    EXPECT_THAT(words.ToVector(), ElementsAre("", "one", std::string_view("\0x", 2)));
    EXPECT_THAT(metadata.GetFloats("floats")->ToVector(), ElementsAre(0.5f, -2.0f));
    EXPECT_EQ((*metadata.GetInt32s("ints"))[1], 7);
    EXPECT_TRUE(metadata.GetStrings("none")->empty());
    EXPECT_EQ(metadata.GetStrings("none")->begin(), metadata.GetStrings("none")->end());
  }
}

TEST_F(MetadataTest, EntriesKeepTheFilesOrder) {
  GgufBuilder builder;
  builder.AddString("z", "1").AddString("a", "2");
  const Metadata& metadata = Read(builder);
  ASSERT_EQ(metadata.entries().size(), 2u);
  EXPECT_EQ(metadata.entries()[0].key, "z");
  EXPECT_TRUE(metadata.Has("a"));
}

TEST_F(MetadataTest, ListsOfIntegersAndFlags) {
  GgufBuilder builder;
  builder.AddArray<int32_t>("i32", ValueType::kInt32, {1, 2, 3});
  builder.AddArray<uint8_t>("u8", ValueType::kUint8, {200});
  builder.AddArray<int64_t>("i64", ValueType::kInt64, {5, int64_t{1} << 40});
  builder.AddArray<int32_t>("negative", ValueType::kInt32, {1, -2});
  builder.AddArray<uint32_t>("empty", ValueType::kUint32, {});
  builder.AddUint32("one", 7).AddStrings("texts", {"a"});
  builder.AddArray<uint8_t>("flags", ValueType::kBool, {1, 0, 1});
  builder.AddArray<uint8_t>("odd", ValueType::kBool, {1, 2});
  const Metadata& metadata = Read(builder);
  EXPECT_THAT(*metadata.GetUint32List("i32"), ElementsAre(1, 2, 3));
  EXPECT_THAT(*metadata.GetUint32List("u8"), ElementsAre(200));
  EXPECT_THAT(*metadata.GetUint32List("one"), ElementsAre(7));
  EXPECT_TRUE(metadata.GetUint32List("empty")->empty());
  EXPECT_THAT(*metadata.GetBools("flags"), ElementsAre(true, false, true));
  EXPECT_EQ(
      metadata.GetUint32List("i64").status(),
      absl::InvalidArgumentError("key \"i64\": needed a number below 2^32, found 1099511627776"));
  EXPECT_EQ(
      metadata.GetUint32List("negative").status(),
      absl::InvalidArgumentError("key \"negative\": needed a number of at least 0, found -2"));
  EXPECT_EQ(metadata.GetUint32List("texts").status(),
            absl::InvalidArgumentError(
                "key \"texts\": needed an array of integers, found array of string"));
  EXPECT_EQ(metadata.GetUint32List("flags").status(),
            absl::InvalidArgumentError("key \"flags\": needed an integer, found bool"));
  EXPECT_EQ(
      metadata.GetBools("i32").status(),
      absl::InvalidArgumentError("key \"i32\": needed an array of bool, found array of int32"));
  EXPECT_EQ(metadata.GetBools("odd").status(),
            absl::InvalidArgumentError("key \"odd\": needed a bool of 0 or 1, found 2"));
  EXPECT_EQ(metadata.GetBools("none").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tandem::gguf
