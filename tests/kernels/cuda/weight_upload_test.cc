// Weights on their way to a device: rows as RowPacker writes them, contiguous matrices, larger than
// the stages, and callbacks for all parts read.
#include "kernels/cuda/weight_upload.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "common/tensor/type.h"
#include "kernels/cuda/pack_rows.h"

namespace tandem::kernels::cuda {
namespace {

class WeightUploadTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override { cudaStreamDestroy(stream_); }

  // Host bytes with gaps between rows and matrices.
  Weight HostWeight(tensor::Type type, uint32_t rows, uint32_t cols, uint32_t count) {
    const uint64_t row_bytes = tensor::RowBytes(type, cols);
    const Weight weight{.type = type,
                        .rows = rows,
                        .cols = cols,
                        .row_stride_bytes = row_bytes + 6,
                        .col_count = cols,
                        .count = count,
                        .matrix_stride_bytes = rows * (row_bytes + 6) + 10};
    bytes_.resize(count * weight.matrix_stride_bytes);
    std::mt19937 engine(7);
    for (std::byte& b : bytes_) b = static_cast<std::byte>(engine());
    Weight with_data = weight;
    with_data.data = bytes_.data();
    return with_data;
  }

  // Places the weight and compares every row with itself packed at once.
  void Check(const Weight& host) {
    WeightUpload upload(stream_);
    uint64_t told = 0;
    upload.OnCopied([&](std::span<const std::byte> part) {
      EXPECT_EQ(part.data(), bytes_.data() + told);  // without a gap
      told += part.size();
    });
    Buffer memory;
    const auto placed = upload.Place(host, memory);
    ASSERT_TRUE(placed.ok()) << placed.status();
    EXPECT_LE(told, bytes_.size());
    // But for what the last stage took, and the row that it ended in.
    EXPECT_GE(told + (size_t{16} << 20) + 2 * host.row_stride_bytes, bytes_.size());
    const RowPacker packer(host.type, host.cols);
    EXPECT_EQ(placed->row_stride_bytes, packer.row_bytes());
    EXPECT_EQ(placed->scales, nullptr);
    EXPECT_EQ(placed->matrix_stride_bytes, host.rows * packer.row_bytes());
    EXPECT_EQ(memory.bytes(), host.count * placed->matrix_stride_bytes);
    EXPECT_EQ(memory.bytes(), WeightUpload::PlacedBytes(host));
    std::vector<std::byte> back(memory.bytes());
    ASSERT_EQ(
        cudaMemcpyAsync(back.data(), memory.data(), back.size(), cudaMemcpyDeviceToHost, stream_),
        cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    std::vector<std::byte> packed(packer.row_bytes());
    for (uint32_t m = 0; m < host.count; ++m) {
      for (uint64_t row = 0; row < host.rows; ++row) {
        const std::byte* const at =
            back.data() + m * placed->matrix_stride_bytes + row * placed->row_stride_bytes;
        const std::byte* const from =
            bytes_.data() + m * host.matrix_stride_bytes + row * host.row_stride_bytes;
        ASSERT_EQ(packer.Write(from, 0, packed.data(), packed.size(), host.scale(m)),
                  packed.size());
        ASSERT_EQ(std::memcmp(at, packed.data(), packed.size()), 0)
            << "matrix " << m << " row " << row;
      }
    }
  }

  cudaStream_t stream_ = nullptr;
  std::vector<std::byte> bytes_;
};

TEST_F(WeightUploadTest, RowsApartBecomeOneAfterAnother) {
  Check(HostWeight(tensor::Type::kQ4_0, 5, 96, 1));
  Check(HostWeight(tensor::Type::kF32, 3, 7, 4));
  Check(HostWeight(tensor::Type::kQ6_K, 1, 256, 2));
}

TEST_F(WeightUploadTest, ScalesGoIntoPacks) {
  const std::vector<float> scales = {0.5f, -3.0f, 0.37f};
  Weight weight = HostWeight(tensor::Type::kNVFP4, 4, 19 * 64, 3);
  Check(weight);
  weight.scales = scales.data();
  Check(weight);
  weight.type = tensor::Type::kMXFP4;
  Buffer memory;
  EXPECT_EQ(WeightUpload(stream_).Place(weight, memory).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(WeightUploadTest, MoreThanBothStagesHold) {
  Check(HostWeight(tensor::Type::kQ8_0, 1100, 4096, 11));
}

TEST_F(WeightUploadTest, ARowLongerThanAStage) {
  Check(HostWeight(tensor::Type::kF32, 2, 5 << 20, 1));
  Check(HostWeight(tensor::Type::kQ6_K, 2, 21 << 20, 1));
}

}  // namespace
}  // namespace tandem::kernels::cuda
