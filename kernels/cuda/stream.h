// Stream: where ops are encoded: launches in order on one CUDA stream, and the scratch that they
// share.
//
//   std::byte* scratch = stream.Scratch(bytes);  // once per op call; a plan pass only counts
//   stream.Launch("rms_norm", &RmsNormKernel<...>, grid, block, shared_bytes, params);
//
// A kernel is a __global__ function of one structure. A plan pass launches nothing, but loads the
// kernels. The first error is kept and ends the encoding: later launches do nothing. One thread.
#ifndef TANDEM_KERNELS_CUDA_STREAM_H_
#define TANDEM_KERNELS_CUDA_STREAM_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace tandem::kernels::cuda {

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  // On the current device.
  cudaError_t Create();
  cudaStream_t handle() const { return handle_; }
  // Number of multiprocessors, for grids that fill the device.
  uint32_t multiprocessors() const { return multiprocessors_; }
  // The most shared memory that a block can have; a launch that asks for more is an error, in a
  // plan pass too.
  size_t most_shared_bytes() const { return most_shared_bytes_; }

  // --- encoding ---
  void Begin(bool planning);
  bool planning() const { return planning_; }
  // Launches and fills that the plan pass has left out: nodes of a graph of the same calls.
  uint64_t planned_nodes() const { return planned_nodes_; }

  // Scratch of the op call being encoded, 256-byte aligned; shared with earlier calls, so its
  // contents are undefined. Null in a plan pass, and for 0 bytes.
  std::byte* Scratch(size_t bytes);

  // Keeps the first bytes of scratch for an op whose rows another one writes: what is encoded in
  // the meantime gets the scratch behind them.
  class KeptScratch {
   public:
    KeptScratch(Stream& stream, size_t bytes);
    KeptScratch(const KeptScratch&) = delete;
    KeptScratch& operator=(const KeptScratch&) = delete;
    ~KeptScratch();

   private:
    Stream& stream_;
    const size_t bytes_;
  };

  template <typename Params>
  void Launch(const char* name, void (*kernel)(Params), dim3 grid, dim3 block, size_t shared_bytes,
              const std::type_identity_t<Params>& params) {
    LaunchAs(/*early=*/false, name, kernel, grid, block, shared_bytes, params);
  }
  // A kernel of which every thread calls FollowEarlierLaunches (device/launch_order.h): where the
  // device can, it begins while the launches before it still run.
  template <typename Params>
  void LaunchEarly(const char* name, void (*kernel)(Params), dim3 grid, dim3 block,
                   size_t shared_bytes, const std::type_identity_t<Params>& params) {
    LaunchAs(/*early=*/true, name, kernel, grid, block, shared_bytes, params);
  }

  void Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
  // Sets every byte.
  void Fill(void* data, uint8_t byte, size_t bytes);

  // Records the first error, as "what: error".
  void Note(cudaError_t error, const char* what);
  void NoteError(std::string error);
  // Empty if no error since Begin.
  const std::string& error() const { return error_; }

  // --- scratch, for the backend ---
  size_t wanted_scratch() const { return wanted_scratch_; }
  void SetScratch(std::byte* data, size_t bytes);

 private:
  static constexpr size_t kPlainSharedBytes = 48 * 1024;
  // Of a grid's second and third dimension (CUDA C++ Programming Guide, compute capabilities).
  static constexpr uint32_t kMostBlocks = 65535;

  bool ReadyToLaunch(const char* name, const dim3& grid, size_t shared_bytes);

  // Asked for its attributes, a kernel is loaded (CUDA C++ Programming Guide, "Lazy Loading"): else
  // its first launch would, within a step's deadline.
  template <typename Kernel>
  void Load(const char* name, Kernel* kernel) {
    ++planned_nodes_;
    cudaFuncAttributes attributes;
    Note(cudaFuncGetAttributes(&attributes, kernel), name);
  }

  template <typename Params>
  void LaunchAs(bool early, const char* name, void (*kernel)(Params), dim3 grid, dim3 block,
                size_t shared_bytes, const Params& params) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= 4096);
    if (!ReadyToLaunch(name, grid, shared_bytes)) return;
    if (planning_) return Load(name, kernel);
    if (shared_bytes > kPlainSharedBytes) {
      Note(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(shared_bytes)),
           name);
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = handle_;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = early && launches_early_ ? 1 : 0;
    Note(cudaLaunchKernelEx(&config, kernel, params), name);
  }

  cudaStream_t handle_ = nullptr;
  uint32_t multiprocessors_ = 1;
  size_t most_shared_bytes_ = kPlainSharedBytes;
  bool launches_early_ = false;  // sm_90 and later
  bool planning_ = false;
  uint64_t planned_nodes_ = 0;
  std::string error_;
  size_t wanted_scratch_ = 0;
  size_t kept_scratch_ = 0;
  std::byte* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

// Scratch bytes of an array, rounded up so that the next one is aligned.
constexpr size_t ScratchBytes(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Number of blocks of `unit` that cover `n`.
constexpr uint32_t Blocks(uint64_t n, uint64_t unit) {
  return static_cast<uint32_t>((n + unit - 1) / unit);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_STREAM_H_
