#include "coordinator/process/spawner.h"

#include <optional>
#include <utility>

namespace tandem::coordinator {
namespace {

constexpr size_t kMaxJobs = 16;
// Poll interval of the thread waiting for jobs; Close wakes it.
constexpr auto kIdle = std::chrono::hours(1);

}  // namespace

Spawner::Spawner() : jobs_(kMaxJobs), thread_([this] { Run(); }) {}

Spawner::~Spawner() {
  jobs_.Close();
  thread_.join();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Spawner::Spawn(std::vector<std::string> argv) {
  Job job{.argv = std::move(argv), .result = {}};
  std::future<Spawned> result = job.result.get_future();
  if (!jobs_.TryPush(std::move(job))) {
    return absl::ResourceExhaustedError("too many processes are started at once");
  }
  return result.get();
}

void Spawner::Run() {
  while (!jobs_.closed() || jobs_.size() > 0) {
    std::optional<Job> job = jobs_.Pop(Deadline::After(kIdle));
    if (job.has_value()) job->result.set_value(ChildProcess::Spawn(job->argv));
  }
}

}  // namespace tandem::coordinator
