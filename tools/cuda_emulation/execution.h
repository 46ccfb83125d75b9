// The execution model of CUDA on one host thread: a grid is run block after block, the threads of a
// block are fibers that run in turn from one barrier or warp function to the next.
//
// It detects, and ends the kernel with an error that names kernel, block and thread: barriers that
// not all threads reach, warp functions that not all 32 lanes call, shared memory that is read
// before it is written, out of bounds, or at the same time as another thread writes it (two
// accesses, one of them a write, without a barrier between them), accesses beyond the end of
// device memory (a guard page after every allocation), and accesses at addresses that are not
// aligned for their type (alignment.cc). It can't detect races in global memory, or effects of real
// concurrency.
//
// Blocks and threads run forwards or backwards (SetOrder): a result that depends on it is wrong.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_EXECUTION_H_
#define TANDEM_TOOLS_CUDA_EMULATION_EXECUTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/cuda_emulation/fiber.h"
#include "tools/cuda_emulation/shared_memory.h"
#include "tools/cuda_emulation/vector_types.h"

namespace tandem::emulation {

inline constexpr uint32_t kWarp = 32;

enum class Order { kForwards, kBackwards };
void SetOrder(Order order);

// The parameters of a launch.
struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  // May begin before earlier launches have ended: every thread calls NoteFollowed.
  bool early = false;
};

// Runs `body`, the kernel with its parameters, once per thread. Returns the error, or an empty
// string.
std::string RunGrid(const LaunchShape& shape, const std::function<void()>& body);

// --- for code running inside RunGrid ---

// Ends the kernel with this error. Does not return.
[[noreturn]] void Fail(std::string what);

// The implementation of __syncthreads and __syncwarp.
void SyncBlock();
void SyncWarp();

// Every lane of the warp passes 8 bytes and gets those of all lanes, in order. Valid until the
// lane's next warp function.
const std::array<uint64_t, kWarp>& ExchangeInWarp(uint64_t mine);

// The thread has waited for the launches before this one.
void NoteFollowed();

// Whether the calling code runs inside RunGrid.
bool InKernel();
// Ends the kernel with an error if the address of an access of `bytes` is not a multiple of it.
void WantAligned(const void* address, size_t bytes);

uint32_t Lane();
// The shared memory of the block, and the thread's identity in it.
SharedMemory& Shared();
SharedMemory::Access Me();

// Asynchronous copies of a thread (cp.async), which take effect when it waits for them.
struct AsyncCopies {
  std::vector<std::function<void()>> open;                 // of no group yet
  std::vector<std::vector<std::function<void()>>> groups;  // oldest first
};
AsyncCopies& MyAsyncCopies();

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_EXECUTION_H_
