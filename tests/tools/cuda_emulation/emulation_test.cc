// The emulation: it runs correct kernels in any order of threads, and finds what is wrong with
// others. Kernels here are as those of kernels/cuda, small and often broken.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/device/async_copy.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/device/warp.h"
#include "tests/tools/cuda_emulation/run_block.h"
#include "tools/cuda_emulation/execution.h"

namespace tandem::kernels::cuda {
namespace {

using emulation::Order;
using testing::HasSubstr;

// --- what is right ---

TEST(EmulationTest, RunsEveryThreadOfEveryBlockOnce) {
  for (const Order order : {Order::kForwards, Order::kBackwards}) {
    emulation::SetOrder(order);
    std::vector<int> runs(3 * 2 * 2 * 96);
    const std::string error = emulation::RunGrid({dim3(3, 2, 2), dim3(32, 3), 0}, [&] {
      EXPECT_EQ(gridDim.x * gridDim.y * gridDim.z, 12u);
      const uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      const uint32_t thread = threadIdx.y * blockDim.x + threadIdx.x;
      ++runs[block * 96 + thread];
    });
    EXPECT_EQ(error, "");
    EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
  }
  emulation::SetOrder(Order::kForwards);
}

TEST(EmulationTest, OrderIsWhatASuiteChoosesIt) {
  std::vector<uint32_t> seen;
  const auto note = [&] { seen.push_back(blockIdx.x * 32 + threadIdx.x); };
  EXPECT_EQ(emulation::RunGrid({2, 32, 0}, note), "");
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  seen.clear();
  emulation::SetOrder(Order::kBackwards);
  EXPECT_EQ(emulation::RunGrid({2, 32, 0}, note), "");
  EXPECT_TRUE(std::is_sorted(seen.rbegin(), seen.rend()));
  emulation::SetOrder(Order::kForwards);
}

TEST(EmulationTest, SumsOfABlockMeetInSharedMemory) {
  std::vector<uint32_t> sums(kThreads);
  EXPECT_EQ(RunBlock([&] {
              SharedArena arena;
              const auto room = arena.Take<uint32_t>(kBlockReduceRoom);
              sums[threadIdx.x] = BlockSum(threadIdx.x, room);
              sums[threadIdx.x] += BlockSum(1u, room);  // the same room again
            }),
            "");
  EXPECT_EQ(sums, std::vector<uint32_t>(kThreads, 63 * 64 / 2 + 64));
}

TEST(EmulationTest, WarpFunctionsHaveCudasMeanings) {
  struct Seen {
    uint32_t direct, wrapped, exclusive, up, down, ballot;
  };
  std::vector<Seen> seen(kThreads);
  EXPECT_EQ(RunBlock([&] {
              const uint32_t me = threadIdx.x;
              seen[me] = {
                  __shfl_sync(kAllLanes, me, 7),      __shfl_sync(kAllLanes, me, 9, 8),
                  __shfl_xor_sync(kAllLanes, me, 5),  __shfl_up_sync(kAllLanes, me, 3),
                  __shfl_down_sync(kAllLanes, me, 3), __ballot_sync(kAllLanes, me % 3 == 0)};
            }),
            "");
  for (uint32_t me = 0; me < kThreads; ++me) {
    const uint32_t warp = me / 32 * 32, lane = me % 32;
    EXPECT_EQ(seen[me].direct, warp + 7);
    EXPECT_EQ(seen[me].wrapped, me / 8 * 8 + 1);
    EXPECT_EQ(seen[me].exclusive, me ^ 5);
    EXPECT_EQ(seen[me].up, lane >= 3 ? me - 3 : me);
    EXPECT_EQ(seen[me].down, lane < 29 ? me + 3 : me);
    for (uint32_t other = 0; other < 32; ++other) {
      EXPECT_EQ(seen[me].ballot >> other & 1, (warp + other) % 3 == 0 ? 1u : 0u);
    }
  }
}

TEST(EmulationTest, AtomicsOfManyThreadsMeet) {
  uint32_t total = 0, in_global = 0;
  EXPECT_EQ(emulation::RunGrid({5, kThreads, 64},
                               [&] {
                                 SharedArena arena;
                                 const auto count = arena.Take<uint32_t>(1);
                                 if (threadIdx.x == 0) count[0] = 0;
                                 __syncthreads();
                                 count.AtomicAdd(0, threadIdx.x);
                                 __syncthreads();
                                 if (threadIdx.x == 5) total += count[0];
                                 atomicAdd(&in_global, 1u);
                               }),
            "");
  EXPECT_EQ(total, 5u * 63 * 64 / 2);
  EXPECT_EQ(in_global, 5 * kThreads);
}

// --- shared memory ---

// Every thread reads what its neighbour `distance` further wrote.
void ReadNeighbour(uint32_t distance, void (*barrier)()) {
  SharedArena arena;
  const auto tile = arena.Take<uint32_t>(kThreads);
  tile[threadIdx.x] = 0;
  __syncthreads();
  tile[threadIdx.x] = threadIdx.x;
  barrier();
  [[maybe_unused]] const uint32_t other = tile[(threadIdx.x + distance) % kThreads];
}

TEST(EmulationTest, FindsAMissingBarrier) {
  const std::string error = RunBlock([] { ReadNeighbour(63, [] {}); });
  EXPECT_THAT(error, HasSubstr("race in shared memory: read of byte "));
  EXPECT_THAT(error, HasSubstr("without a barrier after thread "));
  EXPECT_THAT(error, HasSubstr("block (0, 0, 0) thread "));
  EXPECT_EQ(RunBlock([] { ReadNeighbour(63, [] { __syncthreads(); }); }), "");
}

TEST(EmulationTest, ABarrierOfWarpsOrdersOnlyTheirLanes) {
  EXPECT_THAT(RunBlock([] { ReadNeighbour(32, [] { __syncwarp(); }); }), HasSubstr("thread "));
  EXPECT_EQ(RunBlock([] { ReadNeighbour(32, [] { __syncthreads(); }); }), "");
  EXPECT_EQ(RunBlock([] {
              SharedArena arena;
              const auto tile = arena.Take<uint32_t>(kThreads);
              tile[threadIdx.x] = threadIdx.x;
              __syncwarp();
              if (tile[threadIdx.x ^ 1] != (threadIdx.x ^ 1)) emulation::Fail("wrong value");
            }),
            "");
}

TEST(EmulationTest, FindsAMissingBarrierBeforeMemoryIsUsedAgain) {
  const auto kernel = [](bool with_barrier) {
    return RunBlock([=] {
      SharedArena arena;
      const auto tile = arena.Take<uint32_t>(kThreads);
      tile[threadIdx.x] = 1;
      __syncthreads();
      [[maybe_unused]] const uint32_t other = tile[(threadIdx.x + 1) % kThreads];
      if (with_barrier) __syncthreads();
      tile[threadIdx.x] = 2;
    });
  };
  EXPECT_THAT(kernel(false), HasSubstr("race in shared memory: write of byte "));
  EXPECT_EQ(kernel(true), "");
}

TEST(EmulationTest, FindsTwoWritersOfOneValue) {
  EXPECT_THAT(RunBlock([] { SharedArena().Take<uint32_t>(1)[0] = threadIdx.x; }),
              HasSubstr("race in shared memory: write of byte 0"));
}

TEST(EmulationTest, FindsAPlainReadBesideAtomics) {
  EXPECT_THAT(RunBlock([] {
                const auto count = SharedArena().Take<uint32_t>(1);
                if (threadIdx.x == 0) count[0] = 0;
                __syncthreads();
                count.AtomicAdd(0, 1u);
                [[maybe_unused]] const uint32_t now = count[0];
              }),
              HasSubstr("race in shared memory"));
}

TEST(EmulationTest, FindsUnwrittenSharedMemory) {
  EXPECT_THAT(RunBlock([] {
                const auto tile = SharedArena().Take<float>(kThreads);
                if (threadIdx.x != 9) tile[threadIdx.x] = 1;
                __syncthreads();
                [[maybe_unused]] const float value = tile[(threadIdx.x + 1) % kThreads];
              }),
              HasSubstr("shared memory read before it was written: byte 36 by thread 8"));
  // Nor does it last from one block to the next.
  const auto leave_and_look = [] {
    const auto tile = SharedArena().Take<uint32_t>(1);
    if (threadIdx.x == 0 && blockIdx.x == 1) [[maybe_unused]]
      const uint32_t value = tile[0];
    if (threadIdx.x == 0) tile[0] = 1;
  };
  EXPECT_THAT(emulation::RunGrid({2, 32, 16}, leave_and_look),
              HasSubstr("block (1, 0, 0) thread 0: shared memory read before it was written"));
}

TEST(EmulationTest, FindsIndicesOutsideAnArray) {
  EXPECT_THAT(RunBlock([] { SharedArena().Take<uint32_t>(kThreads - 1)[threadIdx.x] = 0; }),
              HasSubstr("shared array of 63 elements indexed at 63"));
  EXPECT_THAT(RunBlock([] { SharedArena().Take<uint32_t>(3).AtomicAdd(3, 1u); }),
              HasSubstr("an atomic beyond its end"));
  EXPECT_THAT(RunBlock([] { (void)(SharedArena().Take<uint32_t>(3) + 4); }),
              HasSubstr("a part that begins beyond its end"));
  EXPECT_THAT(RunBlock([] { (void)(SharedArena().Take<uint32_t>(8) + 1).As<uint4>(); }),
              HasSubstr("a misaligned view"));
}

TEST(EmulationTest, FindsMoreSharedMemoryThanTheLaunchAsksFor) {
  const auto kernel = [] { SharedArena().Take<float>(kThreads)[threadIdx.x] = 0; };
  EXPECT_THAT(RunBlock(kernel, kThreads, 252), HasSubstr("shared memory of 252 bytes accessed at"));
  EXPECT_EQ(RunBlock(kernel, kThreads, 256), "");
}

TEST(EmulationTest, ACopyThatIsNotWaitedForHasNotHappened) {
  const std::vector<uint4> source(kThreads, {1, 2, 3, 4});
  const auto kernel = [&](bool wait) {
    return RunBlock([&, wait] {
      SharedArena arena;
      const auto tile = arena.Take<uint4>(kThreads);
      BeginCopy16(tile, threadIdx.x, &source[threadIdx.x]);
      EndCopyGroup();
      if (wait) WaitForCopies<0>();
      __syncthreads();
      const uint4 value = tile[kThreads - 1 - threadIdx.x];
      if (value.w != 4) emulation::Fail("wrong value");
    });
  };
  EXPECT_THAT(kernel(false), HasSubstr("shared memory read before it was written"));
  EXPECT_EQ(kernel(true), "");
}

// --- barriers and warps ---

TEST(EmulationTest, FindsBarriersThatSomeThreadsMiss) {
  EXPECT_THAT(RunBlock([] {
                if (threadIdx.x < 40) __syncthreads();
              }),
              HasSubstr("block (0, 0, 0) is stuck: 40 threads at __syncthreads, 0 at __syncwarp, "
                        "0 in warp functions, 24 ended"));
  EXPECT_THAT(RunBlock([] { threadIdx.x == 3 ? __syncwarp() : __syncthreads(); }),
              HasSubstr("63 threads at __syncthreads, 1 at __syncwarp"));
}

TEST(EmulationTest, FindsLanesThatMissAWarpFunction) {
  EXPECT_THAT(RunBlock([] {
                if (threadIdx.x % kWarp != 31) __shfl_sync(kAllLanes, 1, 0);
              }),
              HasSubstr("62 in warp functions, 2 ended"));
  EXPECT_THAT(RunBlock([] { __shfl_sync(0xffffu, 1, 0); }),
              HasSubstr("a warp function with a mask of some lanes"));
}

TEST(EmulationTest, RefusesShapesThatNoDeviceTakes) {
  const auto nothing = [] {};
  EXPECT_THAT(emulation::RunGrid({1, 48, 0}, nothing), HasSubstr("a block of 48 threads"));
  EXPECT_THAT(emulation::RunGrid({1, 1056, 0}, nothing), HasSubstr("a block of 1056 threads"));
  EXPECT_THAT(emulation::RunGrid({dim3(1, 65536), 32, 0}, nothing), HasSubstr("a grid of 1 x"));
  EXPECT_THAT(emulation::RunGrid({0, 32, 0}, nothing), HasSubstr("a grid of 0 x"));
  EXPECT_THAT(emulation::RunGrid({1, 32, 228 * 1024}, nothing),
              HasSubstr("bytes of shared memory, a block has at most"));
}

// --- the device's memory and its stream ---

struct FillTask {
  float* to;
  uint32_t count;
};

void FillKernel(FillTask task) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < task.count) task.to[i] = 7;
}

class EmulatedDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&data_, kBytes), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaFree(data_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  cudaError_t Fill(uint32_t count, size_t shared_bytes = 0) {
    const cudaLaunchConfig_t config = {
        .gridDim = 2, .blockDim = kThreads, .dynamicSmemBytes = shared_bytes, .stream = stream_};
    return cudaLaunchKernelEx(&config, &FillKernel, FillTask{static_cast<float*>(data_), count});
  }

  static constexpr uint32_t kCount = 100;
  static constexpr size_t kBytes = kCount * sizeof(float);
  cudaStream_t stream_ = nullptr;
  void* data_ = nullptr;
};

TEST_F(EmulatedDeviceTest, WorkWaitsUntilTheStreamIsAsked) {
  std::vector<float> back(kCount, 1);
  ASSERT_EQ(Fill(kCount), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(back.data(), data_, kBytes, cudaMemcpyDeviceToHost, stream_),
            cudaSuccess);
  EXPECT_EQ(back[0], 1);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(back, std::vector<float>(kCount, 7));
}

TEST_F(EmulatedDeviceTest, UnwrittenMemoryIsNan) {
  std::vector<float> back(kCount, 1);
  ASSERT_EQ(cudaMemcpyAsync(back.data(), data_, kBytes, cudaMemcpyDeviceToHost, stream_),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  for (const float value : back) EXPECT_TRUE(value != value);
}

TEST_F(EmulatedDeviceTest, FindsAccessesBeyondAnAllocation) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep segmentation faults to themselves";
#else
  ASSERT_EQ(Fill(kCount + 1), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorLaunchFailure);
  EXPECT_THAT(cudaGetErrorString(cudaErrorLaunchFailure),
              HasSubstr("block (1, 0, 0) thread 36: access to memory that is not the device's, or "
                        "beyond an allocation"));
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorLaunchFailure) << "errors stay";
#endif
}

TEST_F(EmulatedDeviceTest, FindsCopiesThatMixUpHostAndDevice) {
  std::vector<float> host(kCount);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), data_, kBytes, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(data_, host.data(), kBytes, cudaMemcpyDeviceToHost, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(data_, host.data(), kBytes + 1, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(host.data(), 0, kBytes, stream_), cudaErrorInvalidValue);
}

TEST_F(EmulatedDeviceTest, RefusesSharedMemoryThatWasNotAllowed) {
  EXPECT_EQ(Fill(kCount, 48 * 1024 + 1), cudaErrorInvalidValue);
  EXPECT_EQ(Fill(kCount, 48 * 1024), cudaSuccess);
}

TEST(EmulationTest, KernelsThatBeginEarlyFollowInEveryThread) {
  const emulation::LaunchShape early{2, kThreads, 0, /*early=*/true};
  EXPECT_EQ(emulation::RunGrid(early, [] { FollowEarlierLaunches(); }), "");
  const std::string error = emulation::RunGrid(early, [] {
    if (blockIdx.x == 0 || threadIdx.x != 40) FollowEarlierLaunches();
  });
  EXPECT_THAT(error, HasSubstr("block (1, 0, 0) thread 40 has not waited for earlier launches"));
}

}  // namespace
}  // namespace tandem::kernels::cuda
