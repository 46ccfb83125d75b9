#include "tests/kernels/peaks/memory_reading.h"

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace tandem::kernels::peaks {
namespace {

constexpr size_t kBytes = size_t{512} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLine = 64, kBlock = 4 * kLine;
constexpr size_t kAheads[] = {0, 2048, 4096, 8192, 16384};  // 0: no prefetch

// Aligned memory, touched, with huge pages where the kernel gives them. Never returned: the
// benchmarks use it until the program ends.
const std::byte* Map(bool huge) {
  void* const mapped =
      mmap(nullptr, kBytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto address = reinterpret_cast<uintptr_t>(mapped);
  address = (address + kHugePage - 1) / kHugePage * kHugePage;
  auto* const memory = reinterpret_cast<std::byte*>(address);
  madvise(memory, kBytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  std::memset(memory, 1, kBytes);
  return memory;
}

const std::byte* Memory(bool huge) {
  static const std::byte* const small_pages = Map(false);
  static const std::byte* const huge_pages = Map(true);
  return huge ? huge_pages : small_pages;
}

uint64_t Read(const std::byte* begin, const std::byte* end, size_t ahead) {
  using Vector = uint64_t __attribute__((vector_size(16)));
  Vector sums[4] = {};
  for (; begin + kBlock <= end; begin += kBlock) {
    if (ahead > 0) {
#pragma GCC unroll 4
      for (size_t i = 0; i < kBlock; i += kLine) __builtin_prefetch(begin + ahead + i);
    }
    const auto* const vectors = reinterpret_cast<const Vector*>(begin);
#pragma GCC unroll 16
    for (size_t i = 0; i < kBlock / sizeof(Vector); ++i) sums[i % 4] ^= vectors[i];
  }
  sums[0] ^= sums[1] ^ sums[2] ^ sums[3];
  return sums[0][0] ^ sums[0][1];
}

void ReadMemory(benchmark::State& state, bool huge, size_t ahead) {
  const std::byte* const memory = Memory(huge);
  if (memory == nullptr) return state.SkipWithError("no memory");
  const size_t share = kBytes / static_cast<size_t>(state.threads()) / kBlock * kBlock;
  const std::byte* const begin = memory + share * static_cast<size_t>(state.thread_index());
  for (auto _ : state) benchmark::DoNotOptimize(Read(begin, begin + share, ahead));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(share));
}

}  // namespace

void RegisterReadMemory(int threads) {
  for (const bool huge : {false, true}) {
    for (const size_t ahead : kAheads) {
      const std::string name = std::string("ReadMemory/") + (huge ? "huge" : "small") +
                               "_pages/ahead:" + std::to_string(ahead);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) { ReadMemory(state, huge, ahead); })
          ->Threads(threads)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace tandem::kernels::peaks
