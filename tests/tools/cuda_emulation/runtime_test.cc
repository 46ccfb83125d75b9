// The emulated runtime: the device that the environment describes, what a capture refuses, what
// freeing memory waits for, and memory that is only there where it is touched.
#include "tools/cuda_emulation/runtime.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "tools/cuda_emulation/device_model.h"

namespace tandem::emulation {
namespace {

// An environment variable for the duration of a test.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }

 private:
  const char* const name_;
};

void Nothing(int) {}

TEST(DeviceModelTest, TheEnvironmentChoosesTheDevice) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.multiProcessorCount, 4);
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 227u * 1024);
  const Setting sms("TANDEM_EMULATED_SMS", "132"), arch("TANDEM_EMULATED_ARCH", "86"),
      memory("TANDEM_EMULATED_GIB", "80");
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.multiProcessorCount, 132);
  EXPECT_EQ(properties.major, 8);
  EXPECT_EQ(properties.minor, 6);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 99u * 1024);
  EXPECT_EQ(properties.totalGlobalMem, size_t{80} << 30);
}

TEST(DeviceModelTest, UnknownValuesEndTheProcess) {
  const auto with = [](const char* name, const char* value) {
    const Setting setting(name, value);
    TheDeviceModel();
  };
  EXPECT_DEATH(with("TANDEM_EMULATED_ARCH", "75"), "TANDEM_EMULATED_ARCH=75");
  EXPECT_DEATH(with("TANDEM_EMULATED_SMS", "0"), "TANDEM_EMULATED_SMS=0");
  EXPECT_DEATH(with("TANDEM_EMULATED_GIB", "4x"), "TANDEM_EMULATED_GIB=4x");
}

TEST(SharedLimitTest, AKernelGetsWhatTheArchitectureHas) {
  const auto allow = [](int bytes) {
    return cudaFuncSetAttribute(&Nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  EXPECT_EQ(allow(227 * 1024), cudaSuccess);
  EXPECT_EQ(allow(227 * 1024 + 1), cudaErrorInvalidValue);
  EXPECT_EQ(allow(-1), cudaErrorInvalidValue);
  for (const auto& [arch, kib] : {std::pair{"80", 163}, {"86", 99}, {"89", 99}, {"90", 227}}) {
    const Setting setting("TANDEM_EMULATED_ARCH", arch);
    EXPECT_EQ(allow(kib * 1024), cudaSuccess) << arch;
    EXPECT_EQ(allow(kib * 1024 + 16), cudaErrorInvalidValue) << arch;
  }
}

class StreamTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }

  cudaStream_t stream_ = nullptr;
};

TEST_F(StreamTest, ACaptureRefusesWhatMaySynchronise) {
  void *device = nullptr, *host = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 16), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&host, 16, cudaHostAllocDefault), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  void* unused = nullptr;
  const std::pair<const char*, std::function<cudaError_t()>> calls[] = {
      {"cudaMalloc", [&] { return cudaMalloc(&unused, 16); }},
      {"cudaFree", [&] { return cudaFree(device); }},
      {"cudaHostAlloc", [&] { return cudaHostAlloc(&unused, 16, cudaHostAllocDefault); }},
      {"cudaFreeHost", [&] { return cudaFreeHost(host); }},
      {"cudaEventQuery", [&] { return cudaEventQuery(event); }},
      {"cudaEventSynchronize", [&] { return cudaEventSynchronize(event); }},
      {"cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream_); }},
      {"cudaStreamBeginCapture",
       [&] { return cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    const bool invalidates = std::string(name) != "cudaStreamBeginCapture";
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(device, 0, 16, stream_), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaMemsetAsync(device, 0, 16, stream_),
              invalidates ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph),
              invalidates ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    EXPECT_EQ(graph == nullptr, invalidates);
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess) << "the stream works again";
  }
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST_F(StreamTest, OtherThreadsMayDoAnythingMeanwhile) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  std::thread([this] {
    void* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, 16), cudaSuccess);
    EXPECT_EQ(cudaFree(data), cudaSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(StreamTest, AGraphThatIsNotUploadedShows) {
  for (const bool upload : {true, false}) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    if (upload) {
      ASSERT_EQ(cudaGraphUpload(exec, stream_), cudaSuccess);
    }
    const int before = LateGraphUploads();
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    EXPECT_EQ(LateGraphUploads() - before, upload ? 0 : 1);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
}

TEST_F(StreamTest, FreeingMemoryWaitsForTheStream) {
  for (const bool on_host : {false, true}) {
    void* data = nullptr;
    ASSERT_EQ(on_host ? cudaHostAlloc(&data, 16, cudaHostAllocDefault) : cudaMalloc(&data, 16),
              cudaSuccess);
    int asked = 0;
    ASSERT_EQ(Enqueue(stream_, [&] { return ++asked < 5 ? cudaErrorNotReady : cudaSuccess; }),
              cudaSuccess);
    EXPECT_EQ(on_host ? cudaFreeHost(data) : cudaFree(data), cudaSuccess);
    EXPECT_EQ(asked, 5);
  }
}

// Memory that no machine has is there, zeroed, and writable at its end.
TEST_F(StreamTest, LargeMemoryTakesWhatIsTouched) {
  const Setting setting("TANDEM_EMULATED_GIB", "200");
  constexpr size_t kBytes = size_t{150} << 30;
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, kBytes), cudaSuccess);
  auto* const last = static_cast<char*>(data) + kBytes - 3;
  char value[3] = {1, 2, 3}, back[3] = {};
  ASSERT_EQ(cudaMemcpyAsync(last, value, 3, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(back, last, 3, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(back[2], 3);
  ASSERT_EQ(cudaMemsetAsync(data, 0, kBytes, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(back, last, 3, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(back[0] | back[1] | back[2], 0);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

}  // namespace
}  // namespace tandem::emulation
