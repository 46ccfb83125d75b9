// Sound files and, one by one, handcrafted broken ones. (tests/common/model/bad_gguf_test.cc runs
// the golden broken files.)
#include "common/gguf/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/common/gguf/gguf_builder.h"

namespace tandem::gguf {
namespace {

using testing::HasSubstr;

constexpr uint32_t kF32 = 0;

std::vector<std::byte> Filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

// The message of the refusal; empty where the file is accepted.
std::string Refusal(std::span<const std::byte> bytes) {
  const auto file = File::Parse(bytes);
  if (file.ok()) return "";
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << file.status();
  std::string message(file.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}
std::string Refusal(GgufBuilder& builder) { return Refusal(builder.Build()); }

TEST(FileTest, ReadsTensorsInPlace) {
  GgufBuilder builder;
  builder.AddTensor("b", {4, 2}, tensor::Type::kF32, Filled(32, 1));
  builder.AddTensor("a", {32}, tensor::Type::kQ8_0, Filled(34, 2));
  const std::vector<std::byte> bytes = builder.Build();
  auto file = File::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "b");
  const TensorInfo* tensor = file->FindTensor("a");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->type, tensor::Type::kQ8_0);
  EXPECT_EQ(tensor->bytes, 34u);
  EXPECT_EQ(tensor->values, 32u);
  EXPECT_EQ(tensor->ShapeText(), "[32]");
  EXPECT_EQ(tensor->data[33], std::byte{2});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data) - reinterpret_cast<uintptr_t>(bytes.data()),
            bytes.size() - 34);
  EXPECT_EQ(file->FindTensor("c"), nullptr);
  const File moved = std::move(*file);
  EXPECT_EQ(moved.FindTensor("a")->data[0], std::byte{2});
}

TEST(FileTest, NeedsNoKeysAndNoTensors) {
  GgufBuilder builder;
  EXPECT_EQ(Refusal(builder), "");
  builder.AddUint32("general.alignment", 1u << 31);  // no data section, so nothing to align
  EXPECT_EQ(Refusal(builder), "");
}

TEST(FileTest, EveryPrefixOfAFileIsRefused) {
  GgufBuilder builder;
  builder.AddString("text", "hello").AddStrings("words", {"a", "bc"}).AddUint32("number", 3);
  builder.AddTensor("a", {4}, tensor::Type::kF32, Filled(16, 1));
  builder.AddTensor("b", {32}, tensor::Type::kQ4_0, Filled(18, 1));
  const std::vector<std::byte> bytes = builder.Build();
  ASSERT_EQ(Refusal(bytes), "");
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer sees the first byte too far.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_NE(Refusal(cut), "") << size;
  }
}

TEST(FileTest, CountsBeyondTheFileAreRefusedBeforeAnyWork) {
  for (const uint64_t count :
       {uint64_t{1000}, uint64_t{1} << 60, UINT64_MAX, UINT64_MAX / 13 + 1}) {
    GgufBuilder keys;
    keys.num_keys = count;
    EXPECT_THAT(Refusal(keys), HasSubstr("keys, more than the 0 bytes left")) << count;
    GgufBuilder tensors;
    tensors.num_tensors = count;
    EXPECT_THAT(Refusal(tensors), HasSubstr("tensors, more than the 0 bytes left")) << count;
  }
}

TEST(FileTest, ArrayLengthsThatWrapAreRefused) {
  const std::pair<ValueType, uint64_t> kCases[] = {
      {ValueType::kUint64, uint64_t{1} << 61}, {ValueType::kInt16, uint64_t{1} << 63},
      {ValueType::kString, uint64_t{1} << 61}, {ValueType::kString, UINT64_MAX},
      {ValueType::kUint8, UINT64_MAX},         {ValueType::kBool, 5},
  };
  for (const auto& [type, count] : kCases) {
    GgufBuilder builder;
    builder.AddRaw("k", ValueType::kArray,
                   ByteWriter().Number(type).Number(count).Number(uint32_t{0}).bytes());
    EXPECT_THAT(Refusal(builder), HasSubstr("key \"k\": an array of")) << count;
  }
}

TEST(FileTest, ShapesThatOverflowAreRefused) {
  const std::vector<uint64_t> kShapes[] = {
      {uint64_t{1} << 32, uint64_t{1} << 32},
      {uint64_t{1} << 63},
      {UINT64_MAX, UINT64_MAX, UINT64_MAX, 2},
      {uint64_t{1} << 62},      // times 4 bytes
      {3, 0x5555555555555556},  // 2^64 + 2
  };
  for (const auto& shape : kShapes) {
    GgufBuilder builder;
    builder.AddRow("t", shape, kF32, 0).AddData(64);
    EXPECT_THAT(Refusal(builder), HasSubstr("has more than 2^63")) << shape[0];
  }
}

TEST(FileTest, OffsetsThatWrapOrLeaveTheFileAreRefused) {
  for (const uint64_t offset : {uint64_t{32}, uint64_t{64}, ~uint64_t{31}, uint64_t{1} << 63}) {
    GgufBuilder builder;
    builder.AddRow("t", {16}, kF32, offset).AddData(64);
    EXPECT_THAT(Refusal(builder), HasSubstr("tensor \"t\": needs 64 bytes from offset")) << offset;
  }
  GgufBuilder misaligned;
  misaligned.AddRow("t", {1}, kF32, 16).AddData(64);
  EXPECT_EQ(Refusal(misaligned),
            "tensor \"t\": needed an offset that is a multiple of 32, found 16");
}

TEST(FileTest, OverlapIsRefusedAndGapsAreNot) {
  GgufBuilder overlap;
  overlap.AddRow("a", {9}, kF32, 0).AddRow("c", {1}, kF32, 64).AddRow("b", {8}, kF32, 32);
  overlap.AddData(128);
  EXPECT_EQ(Refusal(overlap), "tensor \"b\": its data at offset 32 overlaps that of tensor \"a\"");
  GgufBuilder gap;
  gap.AddRow("b", {8}, kF32, 96).AddRow("a", {8}, kF32, 0).AddData(128);
  EXPECT_EQ(Refusal(gap), "");
}

TEST(FileTest, DuplicatesAreRefused) {
  GgufBuilder keys;
  keys.AddUint32("k", 1).AddUint32("other", 2).AddUint32("k", 1);
  EXPECT_EQ(Refusal(keys), "key \"k\" occurs twice in the file");
  GgufBuilder tensors;
  tensors.AddTensor("t", {1}, tensor::Type::kF32, Filled(4, 0));
  tensors.AddTensor("t", {1}, tensor::Type::kF32, Filled(4, 0));
  EXPECT_EQ(Refusal(tensors), "tensor \"t\": occurs twice in the file");
}

TEST(FileTest, NamesFromTheFileCannotBreakTheLine) {
  GgufBuilder builder;
  builder.AddUint32("a\nb\x1b[31m", 1).AddUint32("a\nb\x1b[31m", 1);
  EXPECT_EQ(Refusal(builder), "key \"a\\nb\\x1b[31m\" occurs twice in the file");
  GgufBuilder longer;
  const std::string name(5000, 'x');
  longer.AddUint32(name, 1).AddUint32(name, 1);
  EXPECT_LT(Refusal(longer).size(), 200u);
}

TEST(FileTest, AlignmentMustBeAPowerOfTwoOfAtLeast8) {
  for (const uint32_t alignment : {8u, 16u, 32u, 4096u}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.AddUint32("general.alignment", alignment);
    builder.AddTensor("a", {3}, tensor::Type::kF32, Filled(12, 1));
    builder.AddTensor("b", {3}, tensor::Type::kF32, Filled(12, 2));
    const auto bytes = builder.Build();
    const auto file = File::Parse(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->FindTensor("b")->data[11], std::byte{2}) << alignment;
  }
  for (const uint32_t alignment : {0u, 1u, 4u, 12u, 48u}) {
    GgufBuilder builder;
    builder.AddUint32("general.alignment", alignment);
    EXPECT_THAT(Refusal(builder), HasSubstr("needed a power of two of at least 8")) << alignment;
  }
}

TEST(FileTest, VersionsOtherThan2And3AreRefused) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBuilder builder;
    builder.version = version;
    EXPECT_EQ(Refusal(builder), "");
  }
  for (const uint32_t version : {0u, 1u, 4u, 255u}) {
    GgufBuilder builder;
    builder.version = version;
    EXPECT_THAT(Refusal(builder), HasSubstr("needed GGUF version 2 or 3, found"));
  }
  GgufBuilder swapped;
  swapped.version = 0x03000000;
  EXPECT_THAT(Refusal(swapped), HasSubstr("big-endian"));
}

TEST(FileTest, TypesWithBlocksNeedWholeBlocks) {
  for (const tensor::Type type : {tensor::Type::kQ8_0, tensor::Type::kQ4_K, tensor::Type::kMXFP4}) {
    const tensor::TypeTraits& traits = tensor::Traits(type);
    GgufBuilder whole;
    whole.AddTensor("t", {2 * traits.block_values, 3}, type, Filled(6 * traits.block_bytes, 0));
    EXPECT_EQ(Refusal(whole), "");
    GgufBuilder part;
    part.AddTensor("t", {traits.block_values / 2, 2}, type, Filled(traits.block_bytes, 0));
    EXPECT_THAT(Refusal(part), HasSubstr("are not whole blocks of"));
  }
}

TEST(FileTest, ALargeVocabularyTakesNoExtraMemory) {
  GgufBuilder builder;
  const std::vector<std::string> tokens(150000, "token");
  builder.AddStrings("tokenizer.ggml.tokens", tokens);
  const auto bytes = builder.Build();
  const auto file = File::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto read = file->metadata().GetStrings("tokenizer.ggml.tokens");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->size(), tokens.size());
  for (const std::string_view token : *read) {
    ASSERT_EQ(token, "token");
    ASSERT_GE(reinterpret_cast<const std::byte*>(token.data()), bytes.data());
    ASSERT_LT(reinterpret_cast<const std::byte*>(token.data()), bytes.data() + bytes.size());
  }
}

}  // namespace
}  // namespace tandem::gguf
