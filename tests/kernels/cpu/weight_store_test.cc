// The cpu backend's copies of weights.
#include "kernels/cpu/weight_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/host/panels.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels::cpu {
namespace {

constexpr uint32_t kLanes = 16;

class WeightStoreTest : public testing::Test {
 protected:
  Weight Place(const Weight& host) {
    const auto run = [](const host::OpList& list) {
      RunList(list);
      return absl::OkStatus();
    };
    const auto copied = [this](std::span<const std::byte> part) { copied_.push_back(part); };
    auto placed = store_.Place(host, run, copied);
    EXPECT_TRUE(placed.ok()) << placed.status();
    return *placed;
  }

  // Small, so that weights take several tasks, runs and regions.
  WeightStore store_{kLanes, 2, {.task = 1024, .run = 8192, .region = 16384}};
  std::vector<std::span<const std::byte>> copied_;
};

TEST_F(WeightStoreTest, ExpertsArePanelsOfTheirOwn) {
  constexpr uint32_t kExperts = 3, kRows = 300, kCols = 96;
  const Matrix all = RandomMatrix(1, Type::kQ4_0, kExperts * kRows, kCols);
  Weight experts = all.weight();
  experts.rows = kRows;
  experts.count = kExperts;
  experts.matrix_stride_bytes = kRows * all.stride;
  const Weight placed = Place(experts);
  EXPECT_EQ(placed.panel_rows, kLanes);
  EXPECT_EQ(placed.matrix_stride_bytes, 19 * kLanes * placed.row_stride_bytes);
  std::vector<std::byte> row(all.stride);
  for (uint32_t i = 0; i < all.rows; ++i) {
    Weight expert = placed;
    expert.data =
        static_cast<const std::byte*>(placed.data) + i / kRows * placed.matrix_stride_bytes;
    host::ReadPanelRow(expert, i % kRows, row.data());
    ASSERT_EQ(std::memcmp(row.data(), all.row(i), all.stride), 0) << "row " << i;
  }
}

TEST_F(WeightStoreTest, WeightsOfHeadsStayInRows) {
  const Matrix m = RandomMatrix(2, Type::kQ8_0, 321, 64, 34);
  Weight host = m.weight();
  host.use = WeightUse::kHeads;
  const Weight placed = Place(host);
  EXPECT_EQ(placed.panel_rows, 0u);
  EXPECT_EQ(placed.row_stride_bytes, 68u);
  for (uint32_t i = 0; i < m.rows; ++i) {
    const auto* row = static_cast<const std::byte*>(placed.data) + i * placed.row_stride_bytes;
    ASSERT_EQ(std::memcmp(row, m.row(i), 68), 0) << "row " << i;
  }
}

TEST_F(WeightStoreTest, ReportsEveryByteOfTheSourceOnceCopied) {
  const Matrix m = RandomMatrix(3, Type::kQ8_0, 300, 64);
  const Weight placed = Place(m.weight());
  EXPECT_NE(placed.data, m.data.get());
  EXPECT_EQ(copied_.size(), 3u);
  const std::byte* next = m.data.get();
  for (const std::span<const std::byte> part : copied_) {
    EXPECT_EQ(part.data(), next);
    next += part.size();
  }
  EXPECT_EQ(next, m.data.get() + 300 * m.stride);
}

TEST_F(WeightStoreTest, FewRowsOfAWideSourceAreMappedAtOnce) {
  // A rank's columns: the source's rows are eight times as long.
  const Matrix m = RandomMatrix(5, Type::kQ8_0, 64, 512);
  Weight host = m.weight();
  host.col_begin = 64;
  host.col_count = 64;
  Place(host);
  EXPECT_EQ(copied_.size(), 4u);  // of 16 rows of 544 bytes
}

TEST_F(WeightStoreTest, WeightsDoNotOverlap) {
  std::vector<Matrix> matrices;
  std::vector<Weight> placed;
  for (uint32_t i = 0; i < 5; ++i) {
    matrices.push_back(RandomMatrix(10 + i, Type::kQ6_K, 17 + i, 512));
    placed.push_back(Place(matrices.back().weight()));
  }
  std::vector<std::byte> row(matrices[0].stride);
  for (uint32_t i = 0; i < 5; ++i) {
    for (uint32_t r = 0; r < matrices[i].rows; ++r) {
      host::ReadPanelRow(placed[i], r, row.data());
      ASSERT_EQ(std::memcmp(row.data(), matrices[i].row(r), row.size()), 0) << i << " " << r;
    }
  }
}

TEST_F(WeightStoreTest, NoRows) {
  Matrix m = RandomMatrix(4, Type::kF32, 1, 8);
  m.rows = 0;
  EXPECT_EQ(Place(m.weight()).rows, 0u);
  EXPECT_TRUE(copied_.empty());
}

}  // namespace
}  // namespace tandem::kernels::cpu
