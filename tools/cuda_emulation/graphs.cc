#include <atomic>
#include <utility>

#include "tools/cuda_emulation/stream_state.h"

namespace {

// The stream that this thread captures, if any.
thread_local cudaStream_t capturing = nullptr;
std::atomic<int> late_uploads{0};

}  // namespace

namespace tandem::emulation {

cudaError_t RefuseInCapture() {
  if (capturing == nullptr) return cudaSuccess;
  capturing->capture->valid = false;
  return cudaErrorStreamCaptureUnsupported;
}

void ForgetCapture(cudaStream_t stream) {
  if (capturing == stream) capturing = nullptr;
}

int LateGraphUploads() { return late_uploads; }

}  // namespace tandem::emulation

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (capturing != nullptr || stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  stream->capture = std::make_unique<Capture>();
  capturing = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  *status =
      stream->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (stream->capture == nullptr) return cudaErrorInvalidValue;
  if (stream->capture->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  capturing = nullptr;
  const std::unique_ptr<Capture> capture = std::move(stream->capture);
  if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
  *graph = new EmulatedGraph(std::move(capture->graph));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new EmulatedGraph(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (stream == nullptr || stream->capture != nullptr) return cudaErrorInvalidValue;
  exec->uploaded = true;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec->uploaded) {
    ++late_uploads;
    exec->uploaded = true;
  }
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
