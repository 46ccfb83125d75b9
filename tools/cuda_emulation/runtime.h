// The part of the CUDA runtime API that Tandem calls, with CUDA's names and semantics (CUDA Runtime
// API reference): deferred in-order streams; device memory initialised to NaN and ended by a guard
// page; graphs; sticky errors.
//
// A stream's work runs on the thread that synchronises with it, or queries a later event. Freeing
// memory waits for the streams of the calling thread, as it does on a GPU for all: behind work that
// never ends it never returns. While a thread captures, calls that may synchronise are refused and
// invalidate the capture (cudaStreamCaptureModeThreadLocal). One device, "emulated", of which
// device_model.h tells. Handles are pointers to plain structures.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_RUNTIME_H_
#define TANDEM_TOOLS_CUDA_EMULATION_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

#include "tools/cuda_emulation/vector_types.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureWrongThread = 908,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
};
struct cudaFuncAttributes {};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1 };
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0;
inline constexpr unsigned cudaEventDisableTiming = 2;
inline constexpr unsigned cudaHostAllocDefault = 0;

struct EmulatedStream;
struct EmulatedEvent;
struct EmulatedGraph;
using cudaStream_t = EmulatedStream*;
using cudaEvent_t = EmulatedEvent*;
using cudaGraph_t = EmulatedGraph*;
using cudaGraphExec_t = EmulatedGraph*;

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major;
  int minor;
  int multiProcessorCount;
  size_t sharedMemPerBlockOptin;
};
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
union cudaLaunchAttributeValue {
  int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

const char* cudaGetErrorName(cudaError_t error);
// The error of a failed launch.
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);

cudaError_t cudaMalloc(void** data, size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
// By this machine's clock, meaningless for a GPU; more than 0.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

namespace tandem::emulation {

// Appends to the stream's work, or to its capture. Work that returns cudaErrorNotReady is retried
// and blocks later work: collectives wait so for their peers, and tests stall a stream.
cudaError_t Enqueue(cudaStream_t stream, std::function<cudaError_t()> work);
cudaError_t EnqueueKernel(const cudaLaunchConfig_t& config, const void* kernel,
                          std::function<void()> body);
// Called for every launch from now on, when it is encoded.
void ObserveLaunches(std::function<void(const void* kernel, const cudaLaunchConfig_t& config)> see);
// Called for every cudaMemsetAsync from now on, likewise.
void ObserveFills(std::function<void(int value, size_t bytes)> see);
cudaError_t AllowSharedBytes(const void* kernel, int bytes);
cudaError_t LoadKernel(const void* kernel);
// Kernels that were launched, or captured, without having been loaded: on a GPU the launch would
// load them.
int LateKernelLoads();
// Launches of graphs so far that were not uploaded before: on a GPU the first launch would upload.
int LateGraphUploads();

}  // namespace tandem::emulation

template <typename... Params, typename... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...),
                               Args&&... args) {
  auto body = [kernel, params = std::tuple<Params...>(std::forward<Args>(args)...)] {
    std::apply(kernel, params);
  };
  return tandem::emulation::EnqueueKernel(*config, reinterpret_cast<const void*>(kernel),
                                          std::move(body));
}

// Loads the kernel; of its attributes there are none.
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel* kernel) {
  return tandem::emulation::LoadKernel(reinterpret_cast<const void*>(kernel));
}

template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int value) {
  return tandem::emulation::AllowSharedBytes(reinterpret_cast<const void*>(kernel), value);
}

#endif  // TANDEM_TOOLS_CUDA_EMULATION_RUNTIME_H_
