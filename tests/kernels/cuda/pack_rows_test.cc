// Packs: every byte of a block has one place, a row may be written in parts, and its size is that
// in the file but for what packs.h says.
#include "kernels/cuda/pack_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/device/packs.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels::cuda {
namespace {

using tensor::Type;

std::vector<Type> BlockTypes() {
  std::vector<Type> types = cpu::Types();
  std::erase_if(types, [](Type type) { return !cpu::Quantised(type); });
  return types;
}

// Bytes 0, 1, 2, ...
std::vector<std::byte> Counting(size_t bytes) {
  std::vector<std::byte> row(bytes);
  for (size_t i = 0; i < bytes; ++i) row[i] = static_cast<std::byte>(i);
  return row;
}

std::vector<std::byte> Packed(Type type, uint32_t cols, const std::vector<std::byte>& row) {
  const RowPacker packer(type, cols);
  std::vector<std::byte> packed(packer.row_bytes(), std::byte{0xee});
  EXPECT_EQ(packer.Write(row.data(), 0, packed.data(), packed.size()), packed.size());
  return packed;
}

TEST(PackLayoutTest, FieldsHaveEveryByteOfABlockOnce) {
  for (const Type type : BlockTypes()) {
    SCOPED_TRACE(std::string(tensor::Name(type)));
    const PackLayout pack = PackOf(type);
    ASSERT_EQ(pack.block_bytes, tensor::Traits(type).block_bytes);
    std::vector<int> times(pack.block_bytes);
    for (const BlockFields& fields : {pack.head, pack.body}) {
      for (const BlockField& field : fields) {
        for (uint32_t i = 0; i < field.bytes; ++i) ++times.at(field.begin + i);
      }
    }
    EXPECT_EQ(times, std::vector<int>(pack.block_bytes, 1));
  }
}

// But for Q3_K, which is padded, and NVFP4, which has room for a scale.
TEST(PackLayoutTest, HeadsAndBodiesAreMultiplesOf16AndPacksNoLargerThanBlocks) {
  for (const Type type : BlockTypes()) {
    SCOPED_TRACE(std::string(tensor::Name(type)));
    const PackLayout pack = PackOf(type);
    EXPECT_EQ(pack.head_bytes % 16, 0u);
    EXPECT_EQ(pack.body_bytes % 16, 0u);
    EXPECT_EQ(pack.values() % 256, 0u);
    const uint32_t more = type == Type::kQ3_K ? 2 : type == Type::kNVFP4 ? 16 : 0;
    EXPECT_EQ(pack.bytes(), pack.blocks * pack.block_bytes + more);
    EXPECT_EQ(pack.scale_at != 0, type == Type::kNVFP4);
  }
}

TEST(PlacedRowBytesTest, AShortPackHasAWholeHead) {
  EXPECT_EQ(PlacedRowBytes(Type::kQ8_0, 4096), 4352u);   // as in the file
  EXPECT_EQ(PlacedRowBytes(Type::kQ8_0, 896), 960u);     // 952 in the file
  EXPECT_EQ(PlacedRowBytes(Type::kQ8_0, 32), 48u);       // 34
  EXPECT_EQ(PlacedRowBytes(Type::kQ6_K, 4096), 3360u);   // as in the file
  EXPECT_EQ(PlacedRowBytes(Type::kQ6_K, 2560), 2112u);   // 2100
  EXPECT_EQ(PlacedRowBytes(Type::kMXFP4, 2880), 1536u);  // 1530
  EXPECT_EQ(PlacedRowBytes(Type::kNVFP4, 4096), 2368u);  // 2304
  EXPECT_EQ(PlacedRowBytes(Type::kNVFP4, 2880), 1680u);  // 1620
  EXPECT_EQ(PlacedRowBytes(Type::kQ3_K, 4096), 16u * (110 + 2));
  EXPECT_EQ(PlacedRowBytes(Type::kIQ1_M, 4096), 896u);   // as in the file
  EXPECT_EQ(PlacedRowBytes(Type::kIQ3_S, 4096), 1760u);  // as in the file
  EXPECT_EQ(PlacedRowBytes(Type::kIQ3_S, 256), 208u);    // 110
  EXPECT_EQ(PlacedRowBytes(Type::kQ1_0, 896), 128u);     // 126
  EXPECT_EQ(PlacedRowBytes(Type::kQ2_0, 896), 256u);     // 252
  EXPECT_EQ(PlacedRowBytes(Type::kF32, 7), 32u);
  EXPECT_EQ(PlacedRowBytes(Type::kF16, 0), 0u);
}

TEST(RowPackerTest, ScalesOfAPackThenItsCodes) {
  // Eight blocks and two.
  const auto row = Counting(10 * 34), packed = Packed(Type::kQ8_0, 320, row);
  std::vector<std::byte> expected;
  for (const auto& [first, blocks] : {std::pair{0, 8}, std::pair{8, 2}}) {
    for (int i = 0; i < blocks; ++i) {
      const auto d = row.begin() + (first + i) * 34;
      expected.insert(expected.end(), d, d + 2);
    }
    expected.resize((expected.size() + 15) / 16 * 16);
    for (int i = 0; i < blocks; ++i) {
      const auto qs = row.begin() + (first + i) * 34 + 2;
      expected.insert(expected.end(), qs, qs + 32);
    }
  }
  EXPECT_EQ(packed, expected);
}

TEST(RowPackerTest, EveryPackHasTheScaleOfItsMatrix) {
  constexpr float kScale = 0.37f;
  // Sixteen blocks and three.
  const auto row = Counting(19 * 36);
  const RowPacker packer(Type::kNVFP4, 19 * 64);
  ASSERT_TRUE(packer.has_scale());
  std::vector<std::byte> packed(packer.row_bytes());
  ASSERT_EQ(packer.Write(row.data(), 0, packed.data(), packed.size(), kScale), packed.size());
  std::vector<std::byte> expected;
  for (const auto& [first, blocks] : {std::pair{0, 16}, std::pair{16, 3}}) {
    const size_t head = expected.size();
    for (int i = 0; i < blocks; ++i) {
      const auto scales = row.begin() + (first + i) * 36;
      expected.insert(expected.end(), scales, scales + 4);
    }
    expected.resize(head + 80);
    std::memcpy(&expected[head + 64], &kScale, sizeof(kScale));
    for (int i = 0; i < blocks; ++i) {
      const auto qs = row.begin() + (first + i) * 36 + 4;
      expected.insert(expected.end(), qs, qs + 32);
    }
  }
  EXPECT_EQ(packed, expected);
  EXPECT_FALSE(RowPacker(Type::kMXFP4, 512).has_scale());
}

TEST(RowPackerTest, CodesOfKQuantsAreSortedByGroup) {
  const auto row = Counting(144), packed = Packed(Type::kQ4_K, 256, row);
  // In the file byte i % 32 of plane i / 64 has code i, those of odd groups in its high half.
  const auto code = [&](uint32_t i) {
    return std::to_integer<uint32_t>(row[16 + i / 64 * 32 + i % 32]) >> i % 64 / 32 * 4 & 15;
  };
  EXPECT_TRUE(std::equal(row.begin(), row.begin() + 16, packed.begin()));
  // 16 bytes have the codes of a group: the first half of them, and above it the second.
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t first = i / 16 * 32 + i % 16;
    EXPECT_EQ(std::to_integer<uint32_t>(packed[16 + i]), code(first) | code(first + 16) << 4) << i;
  }
}

TEST(RowPackerTest, PlainRowsGetZerosBehindThem) {
  auto expected = Counting(28);
  expected.resize(32);
  EXPECT_EQ(Packed(Type::kF32, 7, Counting(28)), expected);
}

TEST(RowPackerTest, PartsOfARowMakeTheRow) {
  constexpr uint32_t kCols = 19 * 256;
  for (const Type type : cpu::Types()) {
    SCOPED_TRACE(std::string(tensor::Name(type)));
    const auto row = Counting(tensor::RowBytes(type, kCols));
    const RowPacker packer(type, kCols);
    for (const size_t room : {RowPacker::kMaxPackBytes, size_t{3001}}) {
      std::vector<std::byte> parts(packer.row_bytes());
      for (uint64_t at = 0; at < parts.size();) {
        const size_t part =
            packer.Write(row.data(), at, &parts[at], std::min(room, parts.size() - at));
        ASSERT_GT(part, 0u);
        at += part;
      }
      EXPECT_EQ(parts, Packed(type, kCols, row)) << room;
    }
    EXPECT_EQ(packer.Write(row.data(), 0, nullptr, 0), 0u);
  }
}

}  // namespace
}  // namespace tandem::kernels::cuda
