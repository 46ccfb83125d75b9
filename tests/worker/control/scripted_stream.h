// A control stream that a test holds: the commands that it was made with, and what the worker
// sends.
#ifndef TANDEM_TESTS_WORKER_CONTROL_SCRIPTED_STREAM_H_
#define TANDEM_TESTS_WORKER_CONTROL_SCRIPTED_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/transport/memory_rendezvous.h"
#include "worker/control/control_stream.h"
#include "worker/control/epoch_fence.h"

namespace tandem::worker {

inline constexpr char kModel[] = "tests/golden/arch/llama/model.gguf";

// Gives the commands that it was made with, then StopCommand; keeps what the worker sends.
class ScriptedStream : public ControlStream {
 public:
  explicit ScriptedStream(std::deque<Command> commands) : commands_(std::move(commands)) {}

  std::optional<Command> NextCommand(Deadline) override {
    if (commands_.empty()) return StopCommand{};
    Command next = std::move(commands_.front());
    commands_.pop_front();
    return next;
  }
  absl::Status CheckEpoch(Epoch epoch) const override { return fence_.Check(epoch); }
  absl::Status SendLoading(Epoch, uint64_t, uint64_t) override { return absl::OkStatus(); }
  absl::Status SendReady(Epoch, const std::vector<uint32_t>&,
                         const std::vector<std::string>&) override {
    ++readies;
    if (on_ready) on_ready();
    return absl::OkStatus();
  }
  absl::Status SendStarted(Epoch) override { return absl::OkStatus(); }
  absl::Status SendFailed(Epoch, const absl::Status& status) override {
    failures.push_back(status);
    return on_failed;
  }
  absl::Status SendStepResult(std::span<const uint8_t>) override { return absl::OkStatus(); }
  void OnEpochEnded(EpochEnded callback) override { epoch_ended_ = std::move(callback); }
  void OnStepFrame(StepFrame) override {}

  // A registry that runs `in_put` before a put of a communicator returns.
  std::unique_ptr<transport::Rendezvous> MakeRendezvous(Epoch) override {
    class Rendezvous : public transport::MemoryRendezvous {
     public:
      explicit Rendezvous(const ScriptedStream& stream) : stream_(stream) {}
      absl::Status Put(const std::string& key, const std::string& value) override {
        if (stream_.in_put && key.starts_with("communicator/")) stream_.in_put();
        return MemoryRendezvous::Put(key, value);
      }
      absl::StatusOr<std::string> Get(const std::string& key, Deadline deadline) override {
        if (stream_.others_have_loaded && key.starts_with("loaded/")) return "";
        return MemoryRendezvous::Get(key, deadline);
      }

     private:
      const ScriptedStream& stream_;
    };
    return std::make_unique<Rendezvous>(*this);
  }

  void Abort(Epoch epoch, const absl::Status& reason) {
    fence_.EndThrough(epoch, reason);
    epoch_ended_();
  }

  std::function<void()> in_put, on_ready;
  bool others_have_loaded = true;
  std::vector<absl::Status> failures;
  absl::Status on_failed;  // SendFailed's
  int readies = 0;

 private:
  std::deque<Command> commands_;
  EpochFence fence_;
  EpochEnded epoch_ended_;
};

inline ConfigureCommand Configure(Epoch epoch, int size, int rank = 0) {
  ConfigureCommand command;
  command.epoch = epoch;
  command.assignment = {.epoch = epoch, .rank = rank, .size = size, .ranks_on_host = size};
  command.config = {.model = {.path = kModel, .spec = {.max_model_len = 64}},
                    .device = {.cpu_kernels = config::CpuKernels::kReference, .threads = 1},
                    .cache = {.block_size = 8, .num_kv_blocks = 8},
                    .limits = {.max_num_seqs = 8, .max_num_batched_tokens = 64},
                    .transport = {.step_transport = config::StepTransport::kGrpc}};
  return command;
}

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_CONTROL_SCRIPTED_STREAM_H_
