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

#include "tools/cuda_emulation/device_model.h"
#include "tools/cuda_emulation/execution.h"
#include "tools/cuda_emulation/stream_state.h"

struct EmulatedEvent {
  using Clock = std::chrono::steady_clock;
  // One call of cudaEventRecord.
  struct Record {
    bool passed = false;
    Clock::time_point when{};
  };
  bool timed = false;
  cudaStream_t stream = nullptr;     // of the last record
  std::shared_ptr<Record> record{};  // the last one
};

using tandem::emulation::RefuseInCapture;
using tandem::emulation::Work;

namespace {

constexpr size_t kPage = 4096;
// Also the alignment, so that accesses beyond the end hit the guard page. (The toolkit aligns to
// 256.)
constexpr size_t kAlignment = 16;
constexpr size_t kDefaultSharedBytes = 48 * 1024;
// Allocations above this are not touched until they are used, so that they cost no memory.
constexpr size_t kSparseBytes = size_t{64} << 20;

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
  std::set<cudaStream_t> streams;
  std::map<const void*, size_t> shared_limits;
  std::set<const void*> loaded;  // kernels
  int late_loads = 0;
  std::string launch_error;  // of the last launch that failed
  std::function<void(const void*, const cudaLaunchConfig_t&)> see_launch{};
  std::function<void(int value, size_t bytes)> see_fill{};
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

// Runs pending work up to the first that is not ready, or until `passed`; all later work stays
// pending.
cudaError_t Drain(cudaStream_t stream, const bool& passed = false) {
  std::vector<Work> pending;
  pending.swap(stream->pending);
  cudaError_t state = stream->error;
  auto next = pending.begin();
  while (next != pending.end() && state == cudaSuccess && !passed) {
    state = (*next)();
    if (state != cudaErrorNotReady) stream->error = state, ++next;
  }
  if (stream->error == cudaSuccess) {
    stream->pending.insert(stream->pending.begin(), next, pending.end());
  }
  return state;
}

// Runs the stream's work to its end, or until `passed`, however long that takes.
cudaError_t Finish(cudaStream_t stream, const bool& passed = false) {
  cudaError_t state = Drain(stream, passed);
  while (state == cudaErrorNotReady) {
    std::this_thread::yield();
    state = Drain(stream, passed);
  }
  return state;
}

// What freeing memory waits for.
void FinishStreams() {
  std::vector<cudaStream_t> own;
  {
    std::lock_guard lock(TheDevice().mutex);
    for (const cudaStream_t stream : TheDevice().streams) {
      if (stream->creator == std::this_thread::get_id()) own.push_back(stream);
    }
  }
  for (const cudaStream_t stream : own) Finish(stream);
}

// Zeros again, without touching the whole pages of a large range.
void Clear(std::byte* begin, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t head = RoundUp(address, kPage) - address;
  const size_t pages = (bytes - head) / kPage * kPage;
  std::memset(begin, 0, head);
  madvise(begin + head, pages, MADV_DONTNEED);
  std::memset(begin + head + pages, 0, bytes - head - pages);
}

}  // namespace

namespace tandem::emulation {

cudaError_t Enqueue(cudaStream_t stream, std::function<cudaError_t()> work) {
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->capture == nullptr) {
    stream->pending.push_back(std::move(work));
    return cudaSuccess;
  }
  if (!stream->capture->valid) return cudaErrorStreamCaptureInvalidated;
  stream->capture->graph.work->push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t EnqueueKernel(const cudaLaunchConfig_t& config, const void* kernel,
                          std::function<void()> body) {
  Device& device = TheDevice();
  // The only attribute that there is.
  const bool early =
      config.numAttrs > 0 && config.attrs->val.programmaticStreamSerializationAllowed != 0;
  const LaunchShape shape{config.gridDim, config.blockDim, config.dynamicSmemBytes, early};
  {
    std::lock_guard lock(device.mutex);
    const auto limit = device.shared_limits.find(kernel);
    const size_t allowed =
        limit == device.shared_limits.end() ? kDefaultSharedBytes : limit->second;
    if (shape.shared_bytes > allowed) return cudaErrorInvalidValue;
    constexpr uint32_t kMostBlocks = 65535;  // of a grid's second and third dimension
    if (config.gridDim.y > kMostBlocks || config.gridDim.z > kMostBlocks)
      return cudaErrorInvalidValue;
    if (device.see_launch != nullptr) device.see_launch(kernel, config);
    if (device.loaded.insert(kernel).second) ++device.late_loads;
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

void ObserveFills(std::function<void(int value, size_t bytes)> see) {
  std::lock_guard lock(TheDevice().mutex);
  TheDevice().see_fill = std::move(see);
}

cudaError_t AllowSharedBytes(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<size_t>(bytes) > TheDeviceModel().shared_bytes) {
    return cudaErrorInvalidValue;
  }
  Device& device = TheDevice();
  std::lock_guard lock(device.mutex);
  device.shared_limits[kernel] = static_cast<size_t>(bytes);
  return cudaSuccess;
}

cudaError_t LoadKernel(const void* kernel) {
  Device& device = TheDevice();
  std::lock_guard lock(device.mutex);
  device.loaded.insert(kernel);
  return cudaSuccess;
}

int LateKernelLoads() {
  Device& device = TheDevice();
  std::lock_guard lock(device.mutex);
  return device.late_loads;
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
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureWrongThread:
      return "cudaErrorStreamCaptureWrongThread";
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
  const tandem::emulation::DeviceModel model = tandem::emulation::TheDeviceModel();
  *properties = {.name = "emulated",
                 .totalGlobalMem = model.memory_bytes,
                 .major = model.major,
                 .minor = model.minor,
                 .multiProcessorCount = model.multiprocessors,
                 .sharedMemPerBlockOptin = model.shared_bytes};
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  std::lock_guard lock(TheDevice().mutex);
  *total_bytes = tandem::emulation::TheDeviceModel().memory_bytes;
  *free_bytes = *total_bytes - TheDevice().used;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaMalloc(void** data, size_t bytes) {
  if (const cudaError_t refused = RefuseInCapture(); refused != cudaSuccess) return refused;
  Device& device = TheDevice();
  std::lock_guard lock(device.mutex);
  if (bytes > tandem::emulation::TheDeviceModel().memory_bytes - device.used) {
    return cudaErrorMemoryAllocation;
  }
  const size_t padded = RoundUp(std::max<size_t>(bytes, 1), kAlignment);
  const size_t mapped = RoundUp(padded, kPage) + kPage;
  void* const map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return cudaErrorMemoryAllocation;
  std::byte* const end = static_cast<std::byte*>(map) + mapped - kPage;
  mprotect(end, kPage, PROT_NONE);
  // Filled with NaNs, so that reads of unwritten memory show.
  if (padded <= kSparseBytes) std::memset(end - padded, 0xff, padded);
  *data = end - padded;
  device.allocations[end - padded] = {map, mapped, bytes};
  device.used += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (const cudaError_t refused = RefuseInCapture(); refused != cudaSuccess) return refused;
  if (data == nullptr) return cudaSuccess;
  FinishStreams();
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
  if (const cudaError_t refused = RefuseInCapture(); refused != cudaSuccess) return refused;
  *data = std::aligned_alloc(64, RoundUp(std::max<size_t>(bytes, 1), 64));
  return *data != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void* data) {
  if (const cudaError_t refused = RefuseInCapture(); refused != cudaSuccess) return refused;
  FinishStreams();
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
  {
    std::lock_guard lock(TheDevice().mutex);
    if (TheDevice().see_fill != nullptr) TheDevice().see_fill(value, bytes);
  }
  return tandem::emulation::Enqueue(stream, [=] {
    if (value == 0 && bytes > kSparseBytes) {
      Clear(static_cast<std::byte*>(data), bytes);
    } else if (bytes > 0) {
      std::memset(data, value, bytes);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new EmulatedStream();
  std::lock_guard lock(TheDevice().mutex);
  TheDevice().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    std::lock_guard lock(TheDevice().mutex);
    TheDevice().streams.erase(stream);
  }
  tandem::emulation::ForgetCapture(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t refused = RefuseInCapture(); refused != cudaSuccess) return refused;
  return Finish(stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new EmulatedEvent{.timed = flags == cudaEventDefault};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = stream;
  event->record = std::make_shared<EmulatedEvent::Record>();
  return tandem::emulation::Enqueue(stream, [record = event->record] {
    *record = {.passed = true, .when = EmulatedEvent::Clock::now()};
    return cudaSuccess;
  });
}

// Work that was enqueued after the event was recorded stays pending.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t refused = RefuseInCapture(); refused != cudaSuccess) return refused;
  return event->stream == nullptr ? cudaSuccess : Drain(event->stream, event->record->passed);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t refused = RefuseInCapture(); refused != cudaSuccess) return refused;
  return event->stream == nullptr ? cudaSuccess : Finish(event->stream, event->record->passed);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin->timed || !end->timed) return cudaErrorInvalidResourceHandle;
  if (begin->record == nullptr || end->record == nullptr) return cudaErrorInvalidResourceHandle;
  const std::chrono::duration<float, std::milli> took = end->record->when - begin->record->when;
  *milliseconds = std::max(took.count(), 1e-6f);
  return cudaSuccess;
}
