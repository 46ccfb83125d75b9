#include "coordinator/cluster/worker_link.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

WorkerLink::WorkerLink(v1::Hello hello, Sender sender, Canceller canceller)
    : hello_(std::move(hello)), sender_(std::move(sender)), canceller_(std::move(canceller)) {}

std::string WorkerLink::ProcessName() const {
  return absl::StrCat("pid ", hello_.pid(), hello_.host_name().empty() ? "" : " on ",
                      hello_.host_name());
}

void WorkerLink::Cancel() { End(absl::UnavailableError("control connection cancelled")); }

void WorkerLink::End(const absl::Status& reason) {
  Canceller canceller;
  {
    MutexLock lock(mutex_);
    canceller = canceller_;
  }
  CloseFromStream(reason);
  if (canceller) canceller();
}

absl::Status WorkerLink::Send(v1::CoordinatorMessage message) {
  Sender sender;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return status_;
    sender = sender_;
  }
  absl::Status sent = sender(std::move(message));
  if (!sent.ok()) End(sent);
  return sent;
}

void WorkerLink::AskToExit(const absl::Status& end) {
  v1::CoordinatorMessage message;
  message.mutable_shutdown()->set_failed(!end.ok());
  message.mutable_shutdown()->set_reason(std::string(end.message()));
  Send(std::move(message)).IgnoreError();  // a lost worker needs no shutdown
}

absl::StatusOr<v1::WorkerMessage> WorkerLink::NextEvent(Deadline deadline) {
  if (auto event = events_.Pop(deadline)) return *std::move(event);
  if (absl::Status ended = status(); !ended.ok()) return ended;
  return absl::DeadlineExceededError("no answer from the worker in time");
}

absl::Status WorkerLink::Ping() {
  v1::CoordinatorMessage message;
  {
    MutexLock lock(mutex_);
    message.mutable_ping()->set_call(++last_ping_);
  }
  return Send(std::move(message));
}

bool WorkerLink::WaitPong(Deadline deadline) {
  MutexLock lock(mutex_);
  return ponged_.Wait(lock, deadline,
                      [&]() TANDEM_REQUIRES(mutex_) { return last_pong_ == last_ping_; });
}

absl::Status WorkerLink::status() const {
  MutexLock lock(mutex_);
  return status_;
}

void WorkerLink::OnClosed(ClosedCallback callback) {
  absl::Status ended;
  {
    MutexLock lock(mutex_);
    ended = status_;
    on_closed_ = callback;
  }
  if (!ended.ok() && callback) callback(ended);
}

void WorkerLink::OnStepResult(StepResultCallback callback) {
  MutexLock lock(mutex_);
  on_step_result_ = std::move(callback);
}

void WorkerLink::Deliver(v1::WorkerMessage message) {
  if (message.has_pong()) {
    {
      MutexLock lock(mutex_);
      last_pong_ = message.pong().call();
    }
    return ponged_.NotifyAll();
  }
  if (message.message_case() != v1::WorkerMessage::kStepResult) {
    // Excess events of a faulty worker are dropped; a command waiting for one then times out.
    events_.TryPush(std::move(message));
    return;
  }
  StepResultCallback callback;
  {
    MutexLock lock(mutex_);
    callback = on_step_result_;
  }
  if (callback) callback(std::move(*message.mutable_step_result()));
}

void WorkerLink::CloseFromStream(const absl::Status& status) {
  ClosedCallback callback;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return;
    status_ = status;
    sender_ = nullptr;
    canceller_ = nullptr;
    callback = on_closed_;
  }
  events_.Close();
  if (callback) callback(status);
}

}  // namespace tandem::coordinator
