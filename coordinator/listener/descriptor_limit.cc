#include "coordinator/listener/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {
namespace {

// Standard streams, gRPC's pollers, listening sockets, the model's files while they are read.
constexpr size_t kOwnFiles = 64;
// A process, its control connection, its step channel.
constexpr size_t kFilesPerRank = 8;
constexpr size_t kLeastConnections = 16;
// More would only take memory.
constexpr size_t kMostConnections = 1 << 16;

}  // namespace

absl::StatusOr<size_t> RaiseDescriptorLimit(int ranks) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return absl::ErrnoToStatus(errno, "getrlimit");
  const rlim_t before = std::exchange(files.rlim_cur, files.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = before;
  const size_t reserve =
      kOwnFiles + kSpareWorkerConnections + kFilesPerRank * static_cast<size_t>(ranks);
  if (files.rlim_cur < reserve + kLeastConnections) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this process may open ", files.rlim_cur, " files (ulimit -n), a server of ",
                     ranks, " rank(s) needs ", reserve + kLeastConnections));
  }
  return std::min(static_cast<size_t>(files.rlim_cur) - reserve, kMostConnections);
}

}  // namespace tandem::coordinator
