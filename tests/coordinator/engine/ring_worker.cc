#include "tests/coordinator/engine/ring_worker.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/step/codec.h"

namespace tandem::coordinator {

RingWorker::RingWorker(int rank, uint32_t vocab_size, std::vector<uint32_t> windows,
                       std::vector<uint32_t> num_blocks)
    : rank_(rank), can_hold_(std::move(num_blocks)) {
  limits_.vocab_size = vocab_size;
  limits_.windows = std::move(windows);
}

RingWorker::~RingWorker() {
  Abort(absl::CancelledError("the test is over"));
  if (thread_.joinable()) thread_.join();
}

absl::Status RingWorker::Configure(const config::WorkerConfig& config,
                                   const config::WorkerAssignment& assignment) {
  assignment_ = assignment;
  config_ = config;
  // As ProcessWorkerClient makes it.
  TANDEM_ASSIGN_OR_RETURN(
      auto created, transport::ShmChannel::Create(
                        {.capacity_bytes = config.transport.max_result_bytes.bytes + (1 << 12)},
                        assignment.epoch));
  here_ = std::move(created.channel);
  TANDEM_ASSIGN_OR_RETURN(there_, here_->AttachHere());
  return absl::OkStatus();
}

absl::StatusOr<WorkerReady> RingWorker::FinishLoad(Deadline) {
  return WorkerReady{.num_blocks = can_hold_, .memory_plan = {}};
}

absl::Status RingWorker::Start(const std::vector<uint32_t>& num_blocks) {
  limits_.max_tokens = config_.limits.max_num_batched_tokens;
  limits_.max_seqs = config_.limits.max_num_seqs;
  limits_.max_model_len = config_.model.spec.max_model_len;
  limits_.block_size = config_.cache.block_size;
  limits_.num_blocks = num_blocks;
  limits_.max_result_bytes = config_.transport.max_result_bytes.bytes;
  tables_ = step::BlockTables(limits_);
  thread_ = std::thread([this] { Serve(); });
  return absl::OkStatus();
}

absl::Status RingWorker::Submit(std::span<const uint8_t> frame, Deadline deadline) {
  last_frame_ = frame.size();
  largest_frame_ = std::max(largest_frame_, last_frame_);
  return here_->Send(frame, deadline);
}

absl::StatusOr<step::StepResult> RingWorker::Collect(Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(const transport::Frame frame, here_->Receive(deadline));
  return step::DecodeResult(frame);
}

void RingWorker::Abort(const absl::Status& reason) {
  if (here_ != nullptr) here_->Close(std::string(reason.message()));
}

void RingWorker::Serve() {
  std::vector<uint8_t> out;
  while (true) {
    const auto frame = there_->Receive(Deadline::After(std::chrono::minutes(1)));
    if (absl::IsDeadlineExceeded(frame.status())) continue;
    if (!frame.ok()) return;
    step::Encode(Answer(*frame), out);
    if (!there_->Send(out, Deadline::After(std::chrono::minutes(1))).ok()) return;
  }
}

step::StepResult RingWorker::Answer(std::span<const uint8_t> frame) {
  step::StepResult result;
  result.epoch = assignment_.epoch;
  result.rank = static_cast<uint32_t>(rank_);
  const absl::StatusOr<step::StepDescriptor> step = step::DecodeDescriptor(frame);
  result.status = step.ok() ? step::Validate(*step, limits_, tables_) : step.status();
  if (!result.status.ok()) return result;
  tables_.Apply(*step);
  result.step_id = step->step_id;
  result.rows.resize(rank_ == 0 ? step->rows.size() : 0);
  for (step::RowResult& row : result.rows) row.tokens = {1};
  return result;
}

}  // namespace tandem::coordinator
