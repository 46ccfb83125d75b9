#include "kernels/cuda/stream.h"

#include <algorithm>
#include <utility>

namespace tandem::kernels::cuda {

Stream::~Stream() {
  if (handle_ != nullptr) cudaStreamDestroy(handle_);
}

cudaError_t Stream::Create() {
  int device = 0;
  cudaDeviceProp properties;
  if (cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  if (cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) {
    return error;
  }
  multiprocessors_ = static_cast<uint32_t>(properties.multiProcessorCount);
  most_shared_bytes_ = properties.sharedMemPerBlockOptin;
  launches_early_ = properties.major >= 9;
  return cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking);
}

void Stream::Begin(bool planning) {
  planning_ = planning;
  error_.clear();
  wanted_scratch_ = 0;
  planned_nodes_ = 0;
}

std::byte* Stream::Scratch(size_t bytes) {
  const size_t end = kept_scratch_ + bytes;
  wanted_scratch_ = std::max(wanted_scratch_, end);
  if (planning_ || bytes == 0) return nullptr;
  if (end > scratch_bytes_) {
    NoteError("an op needs " + std::to_string(end) + " bytes of scratch, the plan pass reserved " +
              std::to_string(scratch_bytes_));
  }
  return scratch_ + kept_scratch_;
}

Stream::KeptScratch::KeptScratch(Stream& stream, size_t bytes)
    : stream_(stream), bytes_(ScratchBytes(bytes)) {
  stream_.kept_scratch_ += bytes_;
}

Stream::KeptScratch::~KeptScratch() { stream_.kept_scratch_ -= bytes_; }

void Stream::SetScratch(std::byte* data, size_t bytes) {
  scratch_ = data;
  scratch_bytes_ = bytes;
}

bool Stream::ReadyToLaunch(const char* name, const dim3& grid, size_t shared_bytes) {
  const bool empty = grid.x == 0 || grid.y == 0 || grid.z == 0;
  if (empty || !error_.empty()) return false;
  if (shared_bytes > most_shared_bytes_) {
    NoteError(std::string(name) + ": needs " + std::to_string(shared_bytes) +
              " bytes of shared memory per block, this GPU has " +
              std::to_string(most_shared_bytes_));
    return false;
  }
  if (grid.y > kMostBlocks || grid.z > kMostBlocks) {
    NoteError(std::string(name) + ": needs a grid of " + std::to_string(grid.y) + " by " +
              std::to_string(grid.z) + " rows of blocks, a GPU has at most " +
              std::to_string(kMostBlocks) + " of either");
    return false;
  }
  return true;
}

void Stream::Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (planning_ || bytes == 0 || !error_.empty()) return;
  Note(cudaMemcpyAsync(to, from, bytes, kind, handle_), "copy");
}

void Stream::Fill(void* data, uint8_t byte, size_t bytes) {
  if (bytes == 0 || !error_.empty()) return;
  if (planning_) {
    ++planned_nodes_;
    return;
  }
  Note(cudaMemsetAsync(data, byte, bytes, handle_), "fill");
}

void Stream::Note(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  NoteError(std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

void Stream::NoteError(std::string error) {
  if (error_.empty()) error_ = std::move(error);
}

}  // namespace tandem::kernels::cuda
