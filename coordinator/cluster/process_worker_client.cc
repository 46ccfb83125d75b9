#include "coordinator/cluster/process_worker_client.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/config/configure_codec.h"
#include "common/step/codec.h"
#include "common/step/limits.h"
#include "common/transport/shm_channel.h"

namespace tandem::coordinator {
namespace {

// A dead process' exit code follows its broken connection by a moment.
constexpr auto kExitGrace = std::chrono::milliseconds(500);
// How often a long wait looks whether it was cancelled, or the process stopped.
constexpr auto kPoll = std::chrono::milliseconds(50);
// The system takes a killed worker's memory back, tens of GB at worst.
constexpr auto kKillTimeout = std::chrono::seconds(10);
// Frames of results that may wait: those of the steps in flight, and room.
constexpr size_t kResultFrames = 4;

// DEADLINE_EXCEEDED means "call again" here; a worker's own is final: it waited for others.
absl::Status FailedStatus(const v1::Failed& failed) {
  const auto code = static_cast<absl::StatusCode>(failed.code());
  return absl::Status(
      code == absl::StatusCode::kDeadlineExceeded ? absl::StatusCode::kAborted : code,
      failed.message());
}

// At most one of them is set; the epochs of the others are 0.
uint64_t EventEpoch(const v1::WorkerMessage& event) {
  return std::max({event.loading().epoch(), event.ready().epoch(), event.started().epoch(),
                   event.failed().epoch()});
}

}  // namespace

ProcessWorkerClient::ProcessWorkerClient(int rank, std::shared_ptr<WorkerLink> link,
                                         std::shared_ptr<ChildProcess> process,
                                         RankProgressFn on_progress)
    : rank_(rank),
      link_(std::move(link)),
      process_(std::move(process)),
      on_progress_(std::move(on_progress)),
      channel_(std::make_shared<SharedChannel>()) {
  // A worker that dies in a step must not cost the step's whole deadline.
  link_->OnClosed([channel = channel_](const absl::Status& status) {
    channel->Close(std::string(status.message()));
  });
}

ProcessWorkerClient::~ProcessWorkerClient() {
  link_->OnClosed(nullptr);
  link_->OnStepResult(nullptr);
}

void ProcessWorkerClient::Report(RankProgress::Stage stage, const v1::Loading& loading) {
  if (!on_progress_) return;
  on_progress_(
      static_cast<size_t>(rank_),
      {.stage = stage, .done_bytes = loading.done_bytes(), .total_bytes = loading.total_bytes()});
}

absl::StatusOr<std::string> ProcessWorkerClient::OpenChannel(const config::WorkerConfig& config,
                                                             Epoch epoch) {
  std::shared_ptr<transport::Channel> opened;
  std::string address;
  const size_t max_bytes = step::StepLimits::Of(config).MaxFrameBytes();
  if (config.transport.step_transport == config::StepTransport::kShm) {
    // A ring's largest frame is a few bytes less than the ring.
    TANDEM_ASSIGN_OR_RETURN(auto created, transport::ShmChannel::Create(
                                              {.capacity_bytes = max_bytes + (1 << 12)}, epoch));
    address = std::move(created.address);
    opened = std::move(created.channel);
  } else {
    results_ = std::make_shared<transport::QueueChannel>(
        max_bytes, kResultFrames,
        [link = link_](std::span<const uint8_t> frame, Deadline) {
          v1::CoordinatorMessage message;
          message.set_step(frame.data(), frame.size());
          return link->Send(std::move(message));
        },
        [](const std::string&) {});
    opened = results_;
  }
  channel_->Set(std::move(opened));
  return address;
}

absl::Status ProcessWorkerClient::Configure(const config::WorkerConfig& config,
                                            const config::WorkerAssignment& assignment) {
  epoch_ = assignment.epoch;
  absl::StatusOr<std::string> address = OpenChannel(config, assignment.epoch);
  if (!address.ok()) return Explain(address.status());
  v1::CoordinatorMessage message;
  config::ToProto(config, assignment, *message.mutable_configure());
  message.mutable_configure()->set_step_channel_address(*address);
  return Explain(link_->Send(std::move(message)));
}

absl::Status ProcessWorkerClient::StartLoad() {
  v1::CoordinatorMessage message;
  message.mutable_load()->set_epoch(epoch_.value);
  return Explain(link_->Send(std::move(message)));
}

absl::StatusOr<v1::WorkerMessage> ProcessWorkerClient::NextLinkEvent(Deadline deadline) {
  while (true) {
    absl::StatusOr<v1::WorkerMessage> event = link_->NextEvent(deadline.OrAfter(kPoll));
    if (!absl::IsDeadlineExceeded(event.status())) return event;
    if (process_ != nullptr && process_->IsStopped()) {
      Kill();
      return absl::UnavailableError("was stopped while it started, and killed");
    }
    if (deadline.Passed()) return event;
  }
}

absl::StatusOr<v1::WorkerMessage> ProcessWorkerClient::NextEvent(Deadline deadline) {
  while (true) {
    absl::StatusOr<v1::WorkerMessage> event = NextLinkEvent(deadline);
    if (!event.ok()) return Explain(event.status());
    if (EventEpoch(*event) != epoch_.value) continue;  // of an epoch that is over
    if (event->has_failed()) return Failure(event->failed());
    return event;
  }
}

absl::Status ProcessWorkerClient::AwaitLoading(Deadline answer, Deadline last,
                                               const std::function<bool()>& cancelled) {
  while (true) {
    const absl::StatusOr<v1::WorkerMessage> event = NextLinkEvent(answer.OrAfter(kPoll));
    if (absl::IsDeadlineExceeded(event.status())) {
      if (cancelled && cancelled()) return absl::CancelledError("stopped while workers load");
      if (!answer.Passed()) continue;
      Kill();
    }
    if (!event.ok()) return Explain(event.status());
    if (EventEpoch(*event) != epoch_.value) {
      if (event->has_loading()) answer = last;  // it takes Configure when that load ends
      continue;
    }
    if (event->has_failed()) return Failure(event->failed());
    if (event->has_loading()) {
      Report(RankProgress::Stage::kLoading, event->loading());
      return absl::OkStatus();
    }
    return Explain(absl::InternalError("answered Load without Loading"));
  }
}

absl::StatusOr<v1::WorkerMessage> ProcessWorkerClient::NextAnswer(Deadline deadline) {
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(v1::WorkerMessage event, NextEvent(deadline));
    if (!event.has_loading()) return event;
    Report(RankProgress::Stage::kLoading, event.loading());
    TANDEM_LOG(kInfo) << "rank " << rank_ << " loading: " << (event.loading().done_bytes() >> 20)
                      << " of " << (event.loading().total_bytes() >> 20) << " MiB";
  }
}

absl::StatusOr<WorkerReady> ProcessWorkerClient::FinishLoad(Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(v1::WorkerMessage event, NextAnswer(deadline));
  if (!event.has_ready()) return Explain(absl::InternalError("answered Load without Ready"));
  WorkerReady ready;
  ready.num_blocks.assign(event.ready().num_blocks().begin(), event.ready().num_blocks().end());
  ready.memory_plan.assign(event.ready().memory_plan().begin(), event.ready().memory_plan().end());
  for (const std::string& line : ready.memory_plan) {
    TANDEM_LOG(kInfo) << "rank " << rank_ << " memory: " << line;
  }
  return ready;
}

absl::Status ProcessWorkerClient::Start(const std::vector<uint32_t>& num_blocks) {
  // A control stream outlives epochs: results of an earlier one may have arrived until now, but a
  // worker sends none any more once it has answered Load.
  if (results_ != nullptr) {
    link_->OnStepResult([queue = results_](std::string frame) {
      const absl::Status delivered = queue->Deliver(transport::Frame(frame.begin(), frame.end()),
                                                    Deadline::After(Duration::zero()));
      if (!delivered.ok()) queue->Close(std::string(delivered.message()));
    });
  }
  v1::CoordinatorMessage message;
  message.mutable_start()->set_epoch(epoch_.value);
  for (uint32_t blocks : num_blocks) message.mutable_start()->add_num_blocks(blocks);
  return Explain(link_->Send(std::move(message)));
}

absl::Status ProcessWorkerClient::FinishStart(Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(v1::WorkerMessage event, NextAnswer(deadline));
  if (!event.has_started()) return Explain(absl::InternalError("answered Start without Started"));
  Report(RankProgress::Stage::kReady, {});
  return absl::OkStatus();
}

absl::Status ProcessWorkerClient::Submit(std::span<const uint8_t> frame, Deadline deadline) {
  return Explain(channel_->Get()->Send(frame, deadline));
}

absl::StatusOr<step::StepResult> ProcessWorkerClient::Collect(Deadline deadline) {
  absl::StatusOr<transport::Frame> frame = channel_->Get()->Receive(deadline);
  if (!frame.ok()) return Explain(frame.status());
  absl::StatusOr<step::StepResult> result = step::ParseResult(*frame);
  if (!result.ok()) return Explain(result.status());
  return result;
}

absl::Status ProcessWorkerClient::Health() const {
  if (process_ != nullptr) {
    if (absl::Status ended = process_->Poll(); !ended.ok()) {
      return Annotate(ended, absl::StrCat("rank ", rank_, " (pid ", process_->pid(), ")"));
    }
  }
  return Annotate(link_->status(), absl::StrCat("rank ", rank_));
}

absl::Status ProcessWorkerClient::Failure(const v1::Failed& failed) {
  const absl::Status status = FailedStatus(failed);
  const bool of_others = absl::IsAborted(status) || absl::IsUnavailable(status);
  if (process_ == nullptr && !of_others) link_->AskToExit(status);
  return Explain(status);
}

absl::Status ProcessWorkerClient::Explain(const absl::Status& status) const {
  if (status.ok()) return status;
  if (process_ != nullptr && !link_->status().ok()) {
    process_->WaitExit(kExitGrace);
    if (absl::Status ended = process_->Poll(); !ended.ok()) return Health();
  }
  return Annotate(status, absl::StrCat("rank ", rank_));
}

bool ProcessWorkerClient::EndedFromOutside() const {
  if (process_ == nullptr) return false;
  if (!link_->status().ok()) process_->WaitExit(kExitGrace);
  return process_->EndedFromOutside();
}

void ProcessWorkerClient::Kill() {
  if (process_ == nullptr) return link_->Cancel();
  process_->Kill(SIGKILL);
  process_->WaitExit(kKillTimeout);
}

void ProcessWorkerClient::Abort(const absl::Status& reason) {
  v1::CoordinatorMessage message;
  message.mutable_abort()->set_epoch(epoch_.value);
  message.mutable_abort()->set_reason(std::string(reason.message()));
  link_->Send(std::move(message)).IgnoreError();  // a lost worker needs no abort
  channel_->Close(std::string(reason.message()));
}

}  // namespace tandem::coordinator
