#include "coordinator/cluster/worker_registry.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/version.h"
#include "common/step/protocol_version.h"

namespace tandem::coordinator {
namespace {

void AnswerRendezvous(WorkerLink& link, uint64_t call, const absl::Status& status,
                      const std::string& value) {
  v1::CoordinatorMessage message;
  auto* answer = message.mutable_rendezvous_answer();
  answer->set_call(call);
  answer->set_code(static_cast<int>(status.code()));
  answer->set_message(std::string(status.message()));
  answer->set_value(value);
  link.Send(std::move(message)).IgnoreError();  // the worker is gone: no reply needed
}

}  // namespace

void WorkerRegistry::Handle(const std::shared_ptr<WorkerLink>& link, v1::WorkerMessage message) {
  switch (message.message_case()) {
    case v1::WorkerMessage::kRendezvousPut: {
      const auto& put = message.rendezvous_put();
      AnswerRendezvous(*link, put.call(),
                       rendezvous_.Put(Epoch{put.epoch()}, put.key(), put.value()), "");
      break;
    }
    case v1::WorkerMessage::kRendezvousGet: {
      const auto& get = message.rendezvous_get();
      rendezvous_.Get(Epoch{get.epoch()}, get.key(),
                      [link, call = get.call()](absl::StatusOr<std::string> value) {
                        AnswerRendezvous(*link, call, value.status(), value.ok() ? *value : "");
                      });
      break;
    }
    default:
      link->Deliver(std::move(message));
  }
}

absl::Status WorkerRegistry::Check(const v1::Hello& hello) const {
  if (hello.protocol_version() != step::kWorkerProtocolVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker speaks protocol version ", hello.protocol_version(),
                     ", the coordinator ", step::kWorkerProtocolVersion));
  }
  const auto elsewhere = [&](const auto& link) {
    return link != nullptr && link->hello().host_id() != hello.host_id();
  };
  if (one_host_ && std::any_of(links_.begin(), links_.end(), elsewhere)) {
    return absl::FailedPreconditionError(
        "workers must share one host with --step-transport shm and with --collective-transport "
        "shm: this one's host id differs");
  }
  return absl::OkStatus();
}

absl::Status WorkerRegistry::Admit(const std::shared_ptr<WorkerLink>& link) {
  const v1::Hello& hello = link->hello();
  MutexLock lock(mutex_);
  if (absl::Status status = Check(hello); !status.ok()) return status;
  const int size = static_cast<int>(links_.size());
  int rank = hello.has_rank() ? hello.rank() : 0;
  if (!hello.has_rank()) {
    while (rank < size && links_[static_cast<size_t>(rank)] != nullptr) ++rank;
  }
  if (rank < 0 || (rank >= size && hello.has_rank())) {
    return absl::OutOfRangeError(
        absl::StrCat("rank ", rank, " does not exist: tensor parallel size is ", size));
  }
  if (rank >= size) return absl::AlreadyExistsError(absl::StrCat("all ", size, " ranks are taken"));
  if (const auto& holder = links_[static_cast<size_t>(rank)]; holder != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("rank ", rank, " is taken by ", holder->ProcessName()));
  }
  links_[static_cast<size_t>(rank)] = link;
  TANDEM_LOG(kInfo) << "rank " << rank << " connected: " << link->ProcessName() << ", "
                    << hello.device() << ", build " << hello.build();
  if (hello.build() != BuildVersion()) {
    TANDEM_LOG(kWarning) << "rank " << rank << " is build " << hello.build()
                         << ", the coordinator is build " << BuildVersion();
  }
  changed_.NotifyAll();
  return absl::OkStatus();
}

void WorkerRegistry::Release(const std::shared_ptr<WorkerLink>& link) {
  MutexLock lock(mutex_);
  for (size_t rank = 0; rank < links_.size(); ++rank) {
    if (links_[rank] != link) continue;
    links_[rank] = nullptr;
    TANDEM_LOG(kInfo) << "rank " << rank << " disconnected: " << link->ProcessName();
  }
  changed_.NotifyAll();
}

bool WorkerRegistry::WaitReleased(const WorkerLink& link, Deadline deadline) {
  MutexLock lock(mutex_);
  return changed_.Wait(lock, deadline, [&]() TANDEM_REQUIRES(mutex_) {
    return std::none_of(links_.begin(), links_.end(),
                        [&](const auto& taken) { return taken.get() == &link; });
  });
}

bool WorkerRegistry::WaitAll(Deadline poll) {
  MutexLock lock(mutex_);
  return changed_.Wait(lock, poll, [&]() TANDEM_REQUIRES(mutex_) {
    return std::all_of(links_.begin(), links_.end(),
                       [](const auto& link) { return link != nullptr; });
  });
}

std::vector<int> WorkerRegistry::Missing() const {
  MutexLock lock(mutex_);
  std::vector<int> missing;
  for (size_t rank = 0; rank < links_.size(); ++rank) {
    if (links_[rank] == nullptr) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

std::vector<std::shared_ptr<WorkerLink>> WorkerRegistry::links() const {
  MutexLock lock(mutex_);
  return links_;
}

}  // namespace tandem::coordinator
