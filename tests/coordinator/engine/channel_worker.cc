#include "tests/coordinator/engine/channel_worker.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/step/codec.h"
#include "common/transport/shm_channel.h"

namespace tandem::coordinator {

ChannelWorker::ChannelWorker(int rank, uint32_t vocab_size, const std::vector<uint32_t>& windows,
                             std::vector<uint32_t> num_blocks)
    : can_hold_(std::move(num_blocks)),
      link_(std::make_shared<WorkerLink>(
          v1::Hello(),
          [this](const v1::CoordinatorMessage& message) { return TakeMessage(message); })),
      client_(rank, link_, nullptr) {
  limits_.vocab_size = vocab_size;
  limits_.windows.assign(windows.begin(), windows.end());
}

ChannelWorker::~ChannelWorker() {
  Abort(absl::CancelledError("the test is over"));
  if (thread_.joinable()) thread_.join();
}

absl::Status ChannelWorker::Configure(const config::WorkerConfig& config,
                                      const config::WorkerAssignment& assignment) {
  config_ = config;
  assignment_ = assignment;
  return client_.Configure(config, assignment);
}

absl::Status ChannelWorker::TakeMessage(const v1::CoordinatorMessage& message) {
  if (message.has_configure()) return OpenChannel(message.configure().step_channel_address());
  if (message.has_abort()) channel_->Close(message.abort().reason());
  if (message.message_case() != v1::CoordinatorMessage::kStep) return absl::OkStatus();
  return queue_->Deliver({message.step().begin(), message.step().end()},
                         Deadline::After(Duration::zero()));
}

// As the worker's process makes it.
absl::Status ChannelWorker::OpenChannel(const std::string& address) {
  if (!address.empty()) {
    TANDEM_ASSIGN_OR_RETURN(channel_, transport::ShmChannel::Attach(address, assignment_.epoch));
    return absl::OkStatus();
  }
  auto queue = std::make_unique<transport::QueueChannel>(
      step::StepLimits::Of(config_).MaxFrameBytes(), 4,
      [this](std::span<const uint8_t> frame, Deadline) {
        v1::WorkerMessage message;
        message.set_step_result(frame.data(), frame.size());
        link_->Deliver(std::move(message));
        return absl::OkStatus();
      },
      [](const std::string&) {});
  queue_ = queue.get();
  channel_ = std::move(queue);
  return absl::OkStatus();
}

absl::StatusOr<WorkerReady> ChannelWorker::FinishLoad(Deadline) {
  return WorkerReady{.num_blocks = can_hold_, .memory_plan = {}};
}

absl::Status ChannelWorker::Start(const std::vector<uint32_t>& num_blocks) {
  auto limits = step::StepLimits::Of(config_);
  limits.vocab_size = limits_.vocab_size;
  limits.windows = limits_.windows;
  limits.num_blocks = num_blocks;
  limits_ = std::move(limits);
  tables_ = step::BlockTables(limits_);
  TANDEM_RETURN_IF_ERROR(client_.Start(num_blocks));  // from here on it takes results
  thread_ = std::thread([this] { Serve(); });
  return absl::OkStatus();
}

absl::Status ChannelWorker::Submit(std::span<const uint8_t> frame, Deadline deadline) {
  last_frame_ = frame.size();
  largest_frame_ = std::max(largest_frame_, last_frame_);
  return client_.Submit(frame, deadline);
}

absl::StatusOr<step::StepResult> ChannelWorker::Collect(Deadline deadline) {
  return client_.Collect(deadline);
}

void ChannelWorker::Abort(const absl::Status& reason) {
  if (channel_ != nullptr) client_.Abort(reason);
}

void ChannelWorker::Serve() {
  std::vector<uint8_t> out;
  while (true) {
    const auto frame = channel_->Receive(Deadline::After(std::chrono::minutes(1)));
    if (absl::IsDeadlineExceeded(frame.status())) continue;
    if (!frame.ok()) return;
    step::Serialize(Answer(*frame), out);
    if (!channel_->Send(out, Deadline::After(std::chrono::minutes(1))).ok()) return;
  }
}

step::StepResult ChannelWorker::Answer(std::span<const uint8_t> frame) {
  step::StepResult result;
  result.epoch = assignment_.epoch;
  result.rank = static_cast<uint32_t>(rank());
  const absl::StatusOr<step::StepDescriptor> step = step::ParseDescriptor(frame);
  result.status = step.ok() ? step::Validate(*step, limits_, tables_) : step.status();
  if (!result.status.ok()) return result;
  tables_.Apply(*step);
  result.step_id = step->step_id;
  result.rows.resize(rank() == 0 ? step->rows.size() : 0);
  for (step::RowResult& row : result.rows) row.tokens = {1};
  return result;
}

}  // namespace tandem::coordinator
