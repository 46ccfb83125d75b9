#include "tools/cuda_emulation/runtime.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tools/cuda_emulation/execution.h"

using Work = std::function<cudaError_t()>;

struct EmulatedStream {
  std::vector<Work> pending;
  std::unique_ptr<EmulatedGraph> capture;
  cudaError_t error = cudaSuccess;  // stays
};
struct EmulatedEvent {
  using Clock = std::chrono::steady_clock;
  cudaStream_t stream = nullptr;  // of the last record
  // When the stream reached the event; null for events without timing.
  std::shared_ptr<Clock::time_point> passed{};
};
struct EmulatedGraph {
  std::shared_ptr<std::vector<Work>> work = std::make_shared<std::vector<Work>>();
};

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kDeviceBytes = size_t{4} << 30;
// Also the alignment, so that accesses beyond the end hit the guard page. (The toolkit aligns to
// 256.)
constexpr size_t kAlignment = 16;
constexpr size_t kDefaultSharedBytes = 48 * 1024;

struct Allocation {
  void* map = nullptr;
  size_t mapped = 0;
  size_t bytes = 0;
};

// The state of the emulated device.
struct Device {
  std::mutex mutex;
  std::map<const std::byte*, Allocation> allocations;
  size_t used = 0;
  std::map<const void*, size_t> shared_limits;
  std::string launch_error;  // of the last launch that failed
  std::function<void(const void*, const cudaLaunchConfig_t&)> see_launch{};
};

Device& TheDevice() {
  static auto* const device = new Device();
  return *device;
}

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// Whether [data, +bytes) lies in one allocation.
bool OnDevice(const void* data, size_t bytes) {
  Device& device = TheDevice();
  std::lock_guard lock(device.mutex);
  const auto* at = static_cast<const std::byte*>(data);
  auto next = device.allocations.upper_bound(at);
  if (next == device.allocations.begin()) return false;
  const auto& [begin, allocation] = *std::prev(next);
  return bytes <= allocation.bytes && at <= begin + allocation.bytes - bytes;
}

// Runs pending work up to the first that is not ready, which stays pending with all later work.
cudaError_t Drain(cudaStream_t stream) {
  std::vector<Work> pending;
  pending.swap(stream->pending);
  for (auto next = pending.begin(); next != pending.end(); ++next) {
    if (stream->error != cudaSuccess) break;
    const cudaError_t state = (*next)();
    if (state == cudaErrorNotReady) {
      stream->pending.insert(stream->pending.begin(), next, pending.end());
      return state;
    }
    stream->error = state;
  }
  return stream->error;
}

}  // namespace

namespace tandem::emulation {

cudaError_t Enqueue(cudaStream_t stream, std::function<cudaError_t()> work) {
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  (stream->capture != nullptr ? *stream->capture->work : stream->pending)
      .push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t EnqueueKernel(const cudaLaunchConfig_t& config, const void* kernel,
                          std::function<void()> body) {
  Device& device = TheDevice();
  const LaunchShape shape{config.gridDim, config.blockDim, config.dynamicSmemBytes};
  {
    std::lock_guard lock(device.mutex);
    const auto limit = device.shared_limits.find(kernel);
    const size_t allowed =
        limit == device.shared_limits.end() ? kDefaultSharedBytes : limit->second;
    if (shape.shared_bytes > allowed) return cudaErrorInvalidValue;
    if (device.see_launch != nullptr) device.see_launch(kernel, config);
  }
  return Enqueue(config.stream, [shape, body = std::move(body)] {
    const std::string error = RunGrid(shape, body);
    if (error.empty()) return cudaSuccess;
    std::lock_guard lock(TheDevice().mutex);
    TheDevice().launch_error = error;
    return cudaErrorLaunchFailure;
  });
}

void ObserveLaunches(std::function<void(const void*, const cudaLaunchConfig_t&)> see) {
  std::lock_guard lock(TheDevice().mutex);
  TheDevice().see_launch = std::move(see);
}

cudaError_t AllowSharedBytes(const void* kernel, int bytes) {
  Device& device = TheDevice();
  std::lock_guard lock(device.mutex);
  device.shared_limits[kernel] = static_cast<size_t>(bytes);
  return cudaSuccess;
}

}  // namespace tandem::emulation

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
  }
  return "unknown error";
}

const char* cudaGetErrorString(cudaError_t error) {
  if (error != cudaErrorLaunchFailure) return cudaGetErrorName(error);
  static thread_local std::string text;
  std::lock_guard lock(TheDevice().mutex);
  text = TheDevice().launch_error;
  return text.c_str();
}

cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return cudaErrorInvalidDevice;
  *properties = {.name = "emulated",
                 .totalGlobalMem = kDeviceBytes,
                 .major = 9,
                 .minor = 0,
                 .multiProcessorCount = 4,
                 .sharedMemPerBlockOptin = 227 * 1024};
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  std::lock_guard lock(TheDevice().mutex);
  *free_bytes = kDeviceBytes - TheDevice().used;
  *total_bytes = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaMalloc(void** data, size_t bytes) {
  Device& device = TheDevice();
  std::lock_guard lock(device.mutex);
  if (bytes > kDeviceBytes - device.used) return cudaErrorMemoryAllocation;
  const size_t padded = RoundUp(std::max<size_t>(bytes, 1), kAlignment);
  const size_t mapped = RoundUp(padded, kPage) + kPage;
  void* const map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return cudaErrorMemoryAllocation;
  std::byte* const end = static_cast<std::byte*>(map) + mapped - kPage;
  mprotect(end, kPage, PROT_NONE);
  // Filled with NaNs, so that reads of unwritten memory show. Large ones stay untouched and cost no
  // memory.
  if (padded <= (size_t{64} << 20)) std::memset(end - padded, 0xff, padded);
  *data = end - padded;
  device.allocations[end - padded] = {map, mapped, bytes};
  device.used += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  Device& device = TheDevice();
  std::lock_guard lock(device.mutex);
  const auto found = device.allocations.find(static_cast<std::byte*>(data));
  if (found == device.allocations.end()) return cudaErrorInvalidValue;
  device.used -= found->second.bytes;
  munmap(found->second.map, found->second.mapped);
  device.allocations.erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  *data = std::aligned_alloc(64, RoundUp(std::max<size_t>(bytes, 1), 64));
  return *data != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void* data) {
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_device = kind != cudaMemcpyDeviceToHost;
  const bool from_device = kind != cudaMemcpyHostToDevice;
  if (bytes > 0 && (OnDevice(to, bytes) != to_device || OnDevice(from, bytes) != from_device)) {
    return cudaErrorInvalidValue;
  }
  return tandem::emulation::Enqueue(stream, [=] {
    if (bytes > 0) std::memmove(to, from, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  if (bytes > 0 && !OnDevice(data, bytes)) return cudaErrorInvalidValue;
  return tandem::emulation::Enqueue(stream, [=] {
    if (bytes > 0) std::memset(data, value, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new EmulatedStream();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->capture != nullptr) return cudaErrorStreamCaptureInvalidated;
  cudaError_t state = Drain(stream);
  while (state == cudaErrorNotReady) {
    std::this_thread::yield();
    state = Drain(stream);
  }
  return state;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new EmulatedEvent();
  if (flags == cudaEventDefault) {
    (*event)->passed = std::make_shared<EmulatedEvent::Clock::time_point>();
  }
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = stream;
  if (event->passed == nullptr) return cudaSuccess;
  return tandem::emulation::Enqueue(stream, [passed = event->passed] {
    *passed = EmulatedEvent::Clock::now();
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->stream == nullptr) return cudaSuccess;
  if (event->stream->capture != nullptr) return cudaErrorStreamCaptureInvalidated;
  return Drain(event->stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event->stream == nullptr ? cudaSuccess : cudaStreamSynchronize(event->stream);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (begin->passed == nullptr || end->passed == nullptr) return cudaErrorInvalidResourceHandle;
  const std::chrono::duration<float, std::milli> took = *end->passed - *begin->passed;
  *milliseconds = std::max(took.count(), 1e-6f);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->capture != nullptr) return cudaErrorStreamCaptureInvalidated;
  stream->capture = std::make_unique<EmulatedGraph>();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  *status =
      stream->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream->capture == nullptr) return cudaErrorStreamCaptureInvalidated;
  *graph = stream->capture.release();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new EmulatedGraph(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return tandem::emulation::Enqueue(stream, [work = exec->work, next = size_t{0}]() mutable {
    for (; next < work->size(); ++next) {
      if (cudaError_t error = (*work)[next](); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
