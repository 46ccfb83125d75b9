// Weights and KV pages beyond 4 GiB: what stands behind the border is read and written as what
// stands before it. Memory is only touched where a test needs it, which under emulation is all that
// it takes.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/backends.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

constexpr uint64_t kGiB = uint64_t{1} << 30;

class LargeMemoryTest : public testing::TestWithParam<BackendCase> {
 protected:
  // Of the emulated device.
  static void SetUpTestSuite() { setenv("TANDEM_EMULATED_GIB", "16", /*overwrite=*/0); }

  std::byte* Allocate(uint64_t bytes) {
    auto buffer = rig_.backend().Allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    buffers_.push_back(std::move(buffer).value());
    return buffers_.back().data();
  }

  // A copy of `count` parts of device memory, `stride` bytes apart.
  std::byte* CopyApart(const void* from, uint32_t count, uint64_t bytes, uint64_t stride) {
    const std::vector<std::byte> parts =
        rig_.Get(static_cast<const std::byte*>(from), count * bytes);
    std::byte* const to = Allocate((count - 1) * stride + bytes);
    rig_.Execute([&](Backend& b) {
      for (uint32_t i = 0; i < count; ++i) b.Upload(to + i * stride, &parts[i * bytes], bytes);
    });
    return to;
  }

  // The matrix as the backend places it, its rows `stride` bytes apart; 0: as they are.
  Weight Place(const cpu::Matrix& matrix, uint64_t stride) {
    Weight weight = rig_.backend().PlaceWeight(matrix.weight()).value();
    if (stride == 0) return weight;
    weight.data = CopyApart(weight.data, weight.rows, weight.row_stride_bytes, stride);
    weight.row_stride_bytes = stride;
    return weight;
  }

  std::vector<float> Multiply(const Weight& weight, const std::vector<float>& x, uint32_t tokens) {
    MatMulParams params = {rig_.Put(x), tokens, weight.cols, 1, {}};
    const size_t count = size_t{tokens} * weight.rows;
    params.projections[0] = {weight, nullptr, rig_.Poisoned(count), weight.rows};
    rig_.Run([&](Backend& b) { b.Encode(params); });
    return rig_.Get(params.projections[0].y, count);
  }

  Rig rig_{GetParam()};
  std::vector<Buffer> buffers_;
};

TEST_P(LargeMemoryTest, ProductsWithAWeight) {
  constexpr uint32_t kCols = 256, kRows = 6;
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_0, Type::kQ4_K}) {
    SCOPED_TRACE(std::string(tensor::Name(type)));
    const cpu::Matrix matrix = cpu::RandomMatrix(1, type, kRows, kCols);
    const Weight dense = Place(matrix, 0), apart = Place(matrix, kGiB);
    for (const uint32_t tokens : {1u, 3u, 12u, 257u}) {
      const auto x = cpu::RandomFloats(2, size_t{tokens} * kCols);
      // The library may choose another algorithm.
      ExpectClose(Multiply(apart, x, tokens), Multiply(dense, x, tokens), 1e-4f);
    }
    buffers_.clear();
  }
}

TEST_P(LargeMemoryTest, RowsOfATokenTable) {
  constexpr uint32_t kCols = 64;
  for (const Type type : {Type::kF16, Type::kQ8_0}) {
    const cpu::Matrix matrix = cpu::RandomMatrix(3, type, 6, kCols);
    std::vector<std::vector<float>> rows;
    for (const uint64_t stride : {uint64_t{0}, kGiB}) {
      float* const out = rig_.Poisoned(3 * kCols);
      const EmbedParams params{
          rig_.Put(std::vector<int32_t>{5, 0, 4}), 3, Place(matrix, stride), 0, 1.0f, out};
      rig_.Run([&](Backend& b) { b.Encode(params); });
      rows.push_back(rig_.Get(out, 3 * kCols));
    }
    ExpectSameBits(rows[1], rows[0]);
    buffers_.clear();
  }
}

TEST_P(LargeMemoryTest, ProductsWithExperts) {
  constexpr uint32_t kCols = 256, kRows = 16, kExperts = 4;
  const cpu::Matrix matrix = cpu::RandomMatrix(4, Type::kQ8_0, kExperts * kRows, kCols);
  Weight host = matrix.weight();
  host.rows = kRows;
  host.count = kExperts;
  host.matrix_stride_bytes = kRows * matrix.stride;
  const Weight dense = rig_.backend().PlaceWeight(host).value();
  Weight sparse = dense;
  sparse.matrix_stride_bytes = 2 * kGiB;
  sparse.data =
      CopyApart(dense.data, kExperts, dense.matrix_stride_bytes, sparse.matrix_stride_bytes);
  for (const uint32_t tokens : {1u, 4u, 40u}) {
    ExpertMatMulParams params = {};
    std::vector<int32_t> ids;
    for (uint32_t t = 0; t < tokens; ++t) ids.insert(ids.end(), {3, static_cast<int32_t>(t % 3)});
    params.x = rig_.Put(cpu::RandomFloats(5, size_t{tokens} * kCols));
    params.tokens = tokens;
    params.x_stride = kCols;
    params.top_k = 2;
    params.ids = rig_.Put(ids);
    params.num_experts = kExperts;
    params.num_projections = 1;
    std::vector<std::vector<float>> products;
    for (const Weight& weight : {dense, sparse}) {
      const size_t count = ids.size() * kRows;
      params.projections[0] = {weight, nullptr, 0, rig_.Poisoned(count)};
      rig_.Run([&](Backend& b) { b.Encode(params); });
      products.push_back(rig_.Get(params.projections[0].y, count));
    }
    ExpectSameBits(products[1], products[0]);
  }
}

// Tokens written to blocks of a pool, and attended to from there.
std::vector<float> WriteAndAttend(Rig& rig, KvPages pages, const std::vector<int32_t>& blocks) {
  constexpr uint32_t kTokens = 40;
  const size_t row = size_t{pages.kv_heads} * pages.head_dim;
  const auto values = cpu::RandomFloats(6, kTokens * row);
  std::vector<int32_t> slots, positions(kTokens);
  for (uint32_t t = 0; t < kTokens; ++t) {
    const auto size = static_cast<int32_t>(pages.block_size), at = static_cast<int32_t>(t);
    slots.push_back(blocks[t / pages.block_size] * size + at % size);
  }
  RopeWriteKvParams write{};
  write.q = rig.Put(values);
  write.k = rig.Put(values);
  write.v = rig.Put(values);
  write.tokens = kTokens;
  write.heads = pages.kv_heads;
  write.positions = rig.Put(positions);
  write.slots = rig.Put(slots);
  write.pages = pages;
  AttentionParams read{};
  read.q =
      rig.Put(std::vector<float>(values.begin(), values.begin() + static_cast<ptrdiff_t>(row)));
  read.tokens = read.num_seqs = read.max_query_len = 1;
  read.query_offsets = rig.Put(std::vector<int32_t>{0, 1});
  read.context_lens = rig.Put(std::vector<int32_t>{kTokens});
  read.block_tables = rig.Put(blocks);
  read.table_rows = rig.Put(std::vector<int32_t>{0});
  read.table_stride = static_cast<uint32_t>(blocks.size());
  read.pages = pages;
  read.heads = pages.kv_heads;
  read.heads_per_kv = 1;
  read.scale = 0.125f;
  read.max_context_len = kTokens;
  read.out = rig.Poisoned(row);
  rig.Run([&](Backend& b) {
    b.Encode(write);
    b.Encode(read);
  });
  return rig.Get(read.out, row);
}

TEST_P(LargeMemoryTest, PagesOfAKvCache) {
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_0}) {
    SCOPED_TRACE(std::string(tensor::Name(type)));
    KvPages pages{.type = type, .block_size = 16, .kv_heads = 2, .head_dim = 64, .value_dim = 64};
    const uint64_t block_bytes = 2 * 16 * tensor::RowBytes(type, 64);
    std::vector<std::vector<float>> results;
    for (const uint64_t bytes : {4 * block_bytes, 5 * kGiB}) {
      pages.num_blocks = static_cast<uint32_t>(bytes / block_bytes);
      pages.k = Allocate(bytes);
      pages.v = Allocate(bytes);
      const auto last = static_cast<int32_t>(pages.num_blocks) - 1;
      results.push_back(WriteAndAttend(rig_, pages, {last, last - 1, 0}));
    }
    ExpectSameBits(results[1], results[0]);
    buffers_.clear();
  }
}

TANDEM_INSTANTIATE_BACKENDS(LargeMemoryTest);

}  // namespace
}  // namespace tandem::kernels
