#include "tools/cuda_emulation/nccl_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tandem::emulation {
namespace {

constexpr size_t kLineBytes = 4096;
constexpr size_t kBytes = kLineBytes + kMaxRanks * kSlotBytes;
static_assert(sizeof(RankLine) * kMaxRanks <= kLineBytes);

// The result of a call that only a bug of a test makes fail.
int Require(int result, const std::string& what) {
  if (result >= 0) return result;
  std::perror(what.c_str());
  std::abort();
}

}  // namespace

std::string NcclSegment::Create() {
  const int file = Require(memfd_create("emulated-nccl", MFD_CLOEXEC), "memfd_create");
  Require(ftruncate(file, static_cast<off_t>(kBytes)), "ftruncate");
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
}

NcclSegment::NcclSegment(const std::string& path) {
  const int file = Require(open(path.c_str(), O_RDWR | O_CLOEXEC), path);
  void* const map =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  Require(map == MAP_FAILED ? -1 : 0, path);
  close(file);
  lines_ = static_cast<RankLine*>(map);  // zeros are what its constructor makes
  slots_ = static_cast<std::byte*>(map) + kLineBytes;
}

NcclSegment::~NcclSegment() { munmap(lines_, kBytes); }

}  // namespace tandem::emulation
