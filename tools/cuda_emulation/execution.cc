#include "tools/cuda_emulation/execution.h"

#include <setjmp.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "tools/cuda_emulation/builtins.h"
#include "tools/cuda_emulation/device_model.h"

namespace tandem::emulation {
namespace {

constexpr uint32_t kMaxThreads = 1024;

enum class State { kReady, kAtBlockBarrier, kAtWarpBarrier, kInExchange, kDone };

struct Thread {
  uint32_t id = 0;
  uint3 index{};
  State state = State::kReady;
  uint32_t warp_barriers = 0;
  bool followed = false;  // has called NoteFollowed
  uint64_t given = 0;
  AsyncCopies copies{};
};

Order the_order = Order::kForwards;

// The running block, and a host thread's state for it; kept between launches.
class Machine {
 public:
  std::string RunBlock(const LaunchShape& shape, uint3 block, const std::function<void()>& body);

  Thread& current() { return threads_[running_]; }
  // The values last passed by the lanes of the running thread's warp.
  const std::array<uint64_t, kWarp>& received() const { return received_[running_ / kWarp]; }
  SharedMemory& shared() { return shared_; }
  uint32_t block_barriers() const { return block_barriers_; }
  const std::function<void()>& body() const { return *body_; }
  void Leave(State state) {
    current().state = state;
    fibers_[running_]->Yield();
  }
  [[noreturn]] void Fail(std::string what) {
    error_ = absl::StrCat("block (", blockIdx.x, ", ", blockIdx.y, ", ", blockIdx.z, ") thread ",
                          running_, ": ", std::exchange(what, {}));
    // Objects on this stack are not destroyed.
    while (true) fibers_[running_]->Yield();
  }
  sigjmp_buf& fault() { return fault_; }

 private:
  void Reset(const LaunchShape& shape, const std::function<void()>& body);
  void RunThread(uint32_t id);
  bool RunWarp(uint32_t warp);
  bool ReleaseWarp(uint32_t warp);
  bool ReleaseBlock();
  std::string Stuck() const;
  // An error if a thread has ended without NoteFollowed.
  std::string WhoDidNotFollow() const;
  uint32_t Ordered(uint32_t i, uint32_t count) const {
    return the_order == Order::kForwards ? i : count - 1 - i;
  }

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Thread> threads_;
  // Per warp. No lane can write again before all have read, since all must reach the next function.
  std::vector<std::array<uint64_t, kWarp>> received_;
  SharedMemory shared_;
  uint32_t block_barriers_ = 0;
  uint32_t running_ = 0;
  const std::function<void()>* body_ = nullptr;
  std::string error_;
  sigjmp_buf fault_;
};

// Per host thread, made by its first kernel.
thread_local Machine* machine = nullptr;
thread_local bool in_kernel = false;

void Machine::Reset(const LaunchShape& shape, const std::function<void()>& body) {
  const uint32_t count = shape.block.x * shape.block.y * shape.block.z;
  while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>());
  threads_.resize(count);
  received_.resize(count / kWarp);
  for (uint32_t id = 0; id < count; ++id) {
    Thread& thread = threads_[id];
    thread.id = id;
    thread.index = {id % shape.block.x, id / shape.block.x % shape.block.y,
                    id / (shape.block.x * shape.block.y)};
    thread.state = State::kReady;
    thread.warp_barriers = 0;
    thread.followed = false;
    thread.copies.open.clear();
    thread.copies.groups.clear();
    fibers_[id]->Start([](void*) { machine->body()(); }, nullptr);
  }
  shared_.Reset(shape.shared_bytes);
  block_barriers_ = 0;
  body_ = &body;
  error_.clear();
}

void Machine::RunThread(uint32_t id) {
  running_ = id;
  threadIdx = threads_[id].index;
  fibers_[id]->Resume();
  if (fibers_[id]->done()) threads_[id].state = State::kDone;
}

// Runs lanes until none can continue. Returns whether any could.
bool Machine::RunWarp(uint32_t warp) {
  bool progress = false;
  do {
    for (uint32_t i = 0; i < kWarp; ++i) {
      const uint32_t id = warp * kWarp + Ordered(i, kWarp);
      if (threads_[id].state != State::kReady) continue;
      progress = true;
      RunThread(id);
      if (!error_.empty()) return true;
    }
  } while (ReleaseWarp(warp));
  return progress;
}

// Resumes a warp whose lanes have all reached the same function.
bool Machine::ReleaseWarp(uint32_t warp) {
  Thread* const lanes = &threads_[warp * kWarp];
  const State state = lanes[0].state;
  if (state != State::kAtWarpBarrier && state != State::kInExchange) return false;
  if (!std::all_of(lanes, lanes + kWarp, [&](const Thread& t) { return t.state == state; })) {
    return false;
  }
  for (uint32_t i = 0; i < kWarp; ++i) {
    received_[warp][i] = lanes[i].given;
    if (state == State::kAtWarpBarrier) ++lanes[i].warp_barriers;
    lanes[i].state = State::kReady;
  }
  return true;
}

bool Machine::ReleaseBlock() {
  const bool all = std::all_of(threads_.begin(), threads_.end(),
                               [](const Thread& t) { return t.state == State::kAtBlockBarrier; });
  if (!all) return false;
  ++block_barriers_;
  for (Thread& thread : threads_) thread.state = State::kReady;
  return true;
}

std::string Machine::Stuck() const {
  auto count = [&](State state) {
    return std::count_if(threads_.begin(), threads_.end(),
                         [&](const Thread& t) { return t.state == state; });
  };
  return absl::StrCat("block (", blockIdx.x, ", ", blockIdx.y, ", ", blockIdx.z,
                      ") is stuck: ", count(State::kAtBlockBarrier), " threads at __syncthreads, ",
                      count(State::kAtWarpBarrier), " at __syncwarp, ", count(State::kInExchange),
                      " in warp functions, ", count(State::kDone), " ended");
}

std::string Machine::WhoDidNotFollow() const {
  const auto other = std::find_if(threads_.begin(), threads_.end(),
                                  [](const Thread& thread) { return !thread.followed; });
  if (other == threads_.end()) return "";
  return absl::StrCat("block (", blockIdx.x, ", ", blockIdx.y, ", ", blockIdx.z, ") thread ",
                      other->id, " has not waited for earlier launches");
}

std::string Machine::RunBlock(const LaunchShape& shape, uint3 block,
                              const std::function<void()>& body) {
  blockIdx = block;
  Reset(shape, body);
  in_kernel = true;
  const absl::Cleanup leave = [] { in_kernel = false; };
  const auto warps = static_cast<uint32_t>(threads_.size() / kWarp);
  if (sigsetjmp(fault_, 1) != 0) {
    return absl::StrCat("block (", block.x, ", ", block.y, ", ", block.z, ") thread ", running_,
                        ": access to memory that is not the device's, or beyond an allocation");
  }
  while (true) {
    bool progress = ReleaseBlock();
    for (uint32_t i = 0; i < warps; ++i) {
      progress |= RunWarp(Ordered(i, warps));
      if (!error_.empty()) return error_;
    }
    const bool done = std::all_of(threads_.begin(), threads_.end(),
                                  [](const Thread& t) { return t.state == State::kDone; });
    if (done) return shape.early ? WhoDidNotFollow() : "";
    if (!progress) return Stuck();
  }
}

[[maybe_unused]] void OnFault(int, siginfo_t*, void*) { siglongjmp(machine->fault(), 1); }

// While a kernel runs, a segmentation fault is attributed to the kernel. Sanitizers keep their own
// handler.
class FaultGuard {
 public:
  FaultGuard() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    static thread_local std::vector<std::byte> stack(64 * 1024);
    stack_t alternative{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
    sigaltstack(&alternative, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = &OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before_);
#endif
  }
  ~FaultGuard() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    sigaction(SIGSEGV, &before_, nullptr);
#endif
  }

 private:
  struct sigaction before_ = {};
};

std::string CheckShape(const LaunchShape& shape) {
  const uint64_t threads = uint64_t{shape.block.x} * shape.block.y * shape.block.z;
  if (threads == 0 || threads > kMaxThreads || threads % kWarp != 0) {
    return absl::StrCat("a block of ", threads, " threads (wanted: whole warps, at most 1024)");
  }
  const dim3& grid = shape.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
      grid.z > 65535) {
    return absl::StrCat("a grid of ", grid.x, " x ", grid.y, " x ", grid.z, " blocks");
  }
  const size_t most = TheDeviceModel().shared_bytes;
  if (shape.shared_bytes > most) {
    return absl::StrCat(shape.shared_bytes, " bytes of shared memory, a block has at most ", most);
  }
  return "";
}

}  // namespace

void SetOrder(Order order) { the_order = order; }

std::string RunGrid(const LaunchShape& shape, const std::function<void()>& body) {
  if (std::string error = CheckShape(shape); !error.empty()) return error;
  static thread_local const std::unique_ptr<Machine> owner = std::make_unique<Machine>();
  machine = owner.get();
  const FaultGuard guard;
  blockDim = shape.block;
  gridDim = shape.grid;
  const uint64_t blocks = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t at = the_order == Order::kForwards ? i : blocks - 1 - i;
    const uint3 block{static_cast<unsigned>(at % shape.grid.x),
                      static_cast<unsigned>(at / shape.grid.x % shape.grid.y),
                      static_cast<unsigned>(at / shape.grid.x / shape.grid.y)};
    if (std::string error = machine->RunBlock(shape, block, body); !error.empty()) return error;
  }
  return "";
}

void Fail(std::string what) { machine->Fail(std::move(what)); }
bool InKernel() { return in_kernel; }

void WantAligned(const void* address, size_t bytes) {
  const size_t past = reinterpret_cast<uintptr_t>(address) % bytes;
  if (past == 0) return;
  Fail(absl::StrCat("misaligned access: ", bytes, " bytes at an address that is ", past,
                    " past a multiple of ", bytes));
}

void NoteFollowed() { machine->current().followed = true; }

void SyncBlock() { machine->Leave(State::kAtBlockBarrier); }
void SyncWarp() { machine->Leave(State::kAtWarpBarrier); }

const std::array<uint64_t, kWarp>& ExchangeInWarp(uint64_t mine) {
  machine->current().given = mine;
  machine->Leave(State::kInExchange);
  return machine->received();
}

uint32_t Lane() { return machine->current().id % kWarp; }
SharedMemory& Shared() { return machine->shared(); }

SharedMemory::Access Me() {
  const Thread& thread = machine->current();
  return {.thread = thread.id,
          .warp = thread.id / kWarp,
          .block_barriers = machine->block_barriers(),
          .warp_barriers = thread.warp_barriers};
}

AsyncCopies& MyAsyncCopies() { return machine->current().copies; }

}  // namespace tandem::emulation
