#include "kernels/host/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tandem::kernels::host {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

absl::Status Refused(size_t bytes, const char* why) {
  return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes: ", why));
}

}  // namespace

absl::StatusOr<Buffer> AllocatePages(size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kHugePage) return Refused(bytes, "more than the address space");
  const size_t size = (bytes + kPage - 1) / kPage * kPage + (bytes == 0 ? kPage : 0);
  const bool huge = size >= kHugePage;
  const size_t mapped = size + (huge ? kHugePage : 0);
  void* const map =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return Refused(bytes, std::strerror(errno));
  void* data = map;
  if (huge) {
    const auto address = reinterpret_cast<uintptr_t>(map);
    data = reinterpret_cast<void*>((address + kHugePage - 1) / kHugePage * kHugePage);
    madvise(data, size, MADV_HUGEPAGE);  // Advisory: without huge pages it is merely slower.
  }
  return Buffer(data, bytes, [map, mapped](void*) { munmap(map, mapped); });
}

}  // namespace tandem::kernels::host
