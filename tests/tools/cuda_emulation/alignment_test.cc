// The emulation finds accesses at addresses that are not aligned for them, of kernels that are
// built as those of kernels/cuda.
#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "kernels/cuda/device/async_copy.h"
#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/load_matrix.h"
#include "kernels/cuda/device/shared_array.h"
#include "tools/cuda_emulation/execution.h"

namespace tandem::kernels::cuda {
namespace {

using emulation::kWarp;
using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kThreads = 64;

std::string RunBlock(const std::function<void()>& kernel, uint32_t threads = kThreads) {
  return emulation::RunGrid({1, threads, 4096}, kernel);
}

template <typename T>
__attribute__((noinline)) const T* As(const std::byte* address) {
  return reinterpret_cast<const T*>(address);
}

TEST(AlignmentTest, FindsVectorAccesses) {
  alignas(16) std::byte memory[64] = {};
  const auto load = [&]<typename T>(T, size_t at) {
    return RunBlock([&, at] { [[maybe_unused]] const T value = __ldg(As<T>(memory + at)); });
  };
  EXPECT_EQ(load(uint4{}, 16), "");
  EXPECT_THAT(load(uint4{}, 8), HasSubstr("block (0, 0, 0) thread 0: misaligned access: load from "
                                          "an address that is 8 past a multiple of 16"));
  EXPECT_THAT(load(uint2{}, 4), HasSubstr("4 past a multiple of 8"));
  EXPECT_THAT(load(uint32_t{}, 6), HasSubstr("2 past a multiple of 4"));
  EXPECT_THAT(load(uint16_t{}, 5), HasSubstr("1 past a multiple of 2"));
  EXPECT_EQ(load(uint16_t{}, 6), "");
  EXPECT_THAT(RunBlock([&] {
                float4 values = {};
                // Only what one thread does at one place is wrong.
                const size_t at = threadIdx.x == 33 ? 4 : 0;
                *const_cast<float4*>(As<float4>(memory + at)) = values;
              }),
              AllOf(HasSubstr("thread 33: misaligned access: store to "), HasSubstr("float4"),
                    HasSubstr("alignment_test.cc:")));
  EXPECT_THAT(RunBlock([&] { Load<4>(As<float>(memory + 4)); }), HasSubstr("floats.h:"));
  EXPECT_EQ(RunBlock([&] { Load<1>(As<float>(memory + 4)); }), "");
}

TEST(AlignmentTest, FindsAsynchronousCopiesAndMatrixRows) {
  alignas(16) std::byte memory[64] = {};
  // It is never waited for, so nothing is copied: the address alone is wrong.
  EXPECT_THAT(
      RunBlock([&] { BeginCopy16(SharedArena().Take<uint4>(kThreads), threadIdx.x, memory + 8); }),
      HasSubstr("misaligned access: 16 bytes at an address that is 8 past a multiple"));
  EXPECT_THAT(
      RunBlock([&] { BeginCopy8(SharedArena().Take<uint2>(kThreads), threadIdx.x, memory + 4); }),
      HasSubstr("misaligned access: 8 bytes"));
  EXPECT_THAT(RunBlock([&] {
                BeginCopy4(SharedArena().Take<uint32_t>(kThreads), threadIdx.x, memory + 2);
              }),
              HasSubstr("misaligned access: 4 bytes"));
  const auto matrices = [](uint32_t offset, uint32_t row) {
    return RunBlock(
        [=] {
          const auto tile = SharedArena().Take<uint16_t>(512);
          for (uint32_t i = threadIdx.x; i < 512; i += kWarp) tile[i] = 0;
          __syncwarp();
          uint32_t fragment[4];
          LoadMatrices(fragment, tile + offset, row);
        },
        kWarp);
  };
  EXPECT_EQ(matrices(0, 8), "");
  EXPECT_EQ(matrices(4, 12), "") << "it is their sum that counts";
  EXPECT_THAT(matrices(0, 4), HasSubstr("misaligned access: a matrix row"));
  EXPECT_THAT(matrices(4, 8), HasSubstr("misaligned access: a matrix row"));
}

}  // namespace
}  // namespace tandem::kernels::cuda
