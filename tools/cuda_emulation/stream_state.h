// Streams, graphs and captures of the emulated runtime, for its own sources.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_STREAM_STATE_H_
#define TANDEM_TOOLS_CUDA_EMULATION_STREAM_STATE_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tools/cuda_emulation/runtime.h"

namespace tandem::emulation {

using Work = std::function<cudaError_t()>;

// Of calls that may synchronise: refused while the thread captures, which they invalidate. CUDA
// allows some of them on other streams.
cudaError_t RefuseInCapture();
// The stream is destroyed, perhaps in a capture.
void ForgetCapture(cudaStream_t stream);

}  // namespace tandem::emulation

struct EmulatedGraph {
  std::shared_ptr<std::vector<tandem::emulation::Work>> work =
      std::make_shared<std::vector<tandem::emulation::Work>>();
  bool uploaded = false;
};
struct Capture {
  EmulatedGraph graph{};
  std::thread::id thread = std::this_thread::get_id();
  bool valid = true;
};
struct EmulatedStream {
  std::thread::id creator = std::this_thread::get_id();
  std::vector<tandem::emulation::Work> pending{};
  std::unique_ptr<Capture> capture{};
  cudaError_t error = cudaSuccess;  // stays
};

#endif  // TANDEM_TOOLS_CUDA_EMULATION_STREAM_STATE_H_
