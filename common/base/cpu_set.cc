#include "common/base/cpu_set.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace tandem {
namespace {

constexpr int kMaxCpus = 4096;
constexpr int kMostPasses = 1000;  // over the threads of a process

// cpu_set_t has 1024 CPUs; the system calls take masks of any length.
struct Mask {
  static constexpr size_t kSets = kMaxCpus / CPU_SETSIZE;
  cpu_set_t sets[kSets] = {};

  void Add(int cpu) { CPU_SET_S(cpu, sizeof(sets), sets); }
  bool Has(int cpu) const { return CPU_ISSET_S(cpu, sizeof(sets), sets); }
};

// Numbers of the part "0-15" or "32".
std::optional<std::pair<int, int>> ParseRange(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  const bool one = !absl::StrContains(text, "-");
  int first = 0, last = 0;
  if (!absl::SimpleAtoi(ends.first, &first)) return std::nullopt;
  if (!absl::SimpleAtoi(one ? ends.first : ends.second, &last)) return std::nullopt;
  if (first < 0 || last < first || last >= kMaxCpus) return std::nullopt;
  return std::pair(first, last);
}

Mask MaskOf(const CpuSet& cpus) {
  Mask mask;
  for (const int cpu : cpus) mask.Add(cpu);
  return mask;
}

absl::Status CannotRunOn(const CpuSet& cpus, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot run on CPUs ", CpuSetText(cpus), ": ", strerror(error)));
}

absl::Status Restrict(pid_t thread, const CpuSet& cpus) {
  const Mask mask = MaskOf(cpus);
  const bool done = sched_setaffinity(thread, sizeof(mask.sets), mask.sets) == 0;
  return done ? absl::OkStatus() : CannotRunOn(cpus, errno);
}

std::set<pid_t> ThreadsOfProcess() {
  std::set<pid_t> threads;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/task", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    pid_t thread = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &thread)) threads.insert(thread);
  }
  return threads;
}

}  // namespace

std::optional<CpuSet> ParseCpuSet(std::string_view text) {
  if (text.find_first_not_of("0123456789-,") != std::string_view::npos) return std::nullopt;
  CpuSet cpus;
  for (const absl::string_view part : absl::StrSplit(Sv(text), ',')) {
    const auto range = ParseRange(part);
    if (!range.has_value()) return std::nullopt;
    for (int cpu = range->first; cpu <= range->second; ++cpu) cpus.push_back(cpu);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string CpuSetText(const CpuSet& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpus[i]);
    if (end > i + 1) absl::StrAppend(&text, "-", cpus[end - 1]);
    i = end;
  }
  return text;
}

CpuSet UsableCpus() {
  Mask mask;
  CpuSet cpus;
  if (sched_getaffinity(0, sizeof(mask.sets), mask.sets) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (mask.Has(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

absl::Status RestrictProcess(const CpuSet& cpus) {
  if (absl::Status status = RestrictThread(cpus); !status.ok()) return status;
  // Again while there are new ones: a thread that was not reached yet may have started them.
  std::set<pid_t> reached;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const std::set<pid_t> threads = ThreadsOfProcess();
    if (threads.empty()) return absl::UnavailableError("/proc/self/task has no threads");
    if (std::includes(reached.begin(), reached.end(), threads.begin(), threads.end())) {
      return absl::OkStatus();
    }
    // One that has ended meanwhile needs no set.
    for (const pid_t thread : threads) Restrict(thread, cpus).IgnoreError();
    reached = threads;
  }
  return absl::UnavailableError("new threads come faster than they can be kept to CPUs");
}

absl::Status RestrictThread(const CpuSet& cpus) { return Restrict(0, cpus); }

absl::Status RestrictThread(std::thread& thread, const CpuSet& cpus) {
  const Mask mask = MaskOf(cpus);
  const int error = pthread_setaffinity_np(thread.native_handle(), sizeof(mask.sets), mask.sets);
  return error == 0 ? absl::OkStatus() : CannotRunOn(cpus, error);
}

}  // namespace tandem
