#include "worker/control/worker_loop.h"

#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/config/worker_cpus.h"
#include "common/transport/queue_channel.h"
#include "common/transport/shm_channel.h"
#include "worker/comm/open_communicator.h"
#include "worker/comm/shm_group.h"
#include "worker/control/step_server.h"
#include "worker/runtime/planner.h"

namespace tandem::worker {
namespace {

// Waits poll at this interval to check the epoch; normally an interrupt ends them.
constexpr auto kIdlePoll = std::chrono::seconds(5);
constexpr auto kCommunicatorTimeout = std::chrono::seconds(60);
// For all ranks to load. The coordinator's --load-timeout, which ends the epoch, is at most this.
constexpr auto kLoadTimeout = std::chrono::hours(24);
// Progress is reported in at most this many parts, and only if loading takes a while.
constexpr uint64_t kProgressParts = 10;
constexpr uint64_t kProgressBytes = 64 << 20;
// Step frames queued on the gRPC transport.
constexpr size_t kStepFrames = 4;

absl::Status WrongEpoch(Epoch found, Epoch wanted) {
  return absl::FailedPreconditionError(
      absl::StrCat("command of epoch ", found.value, " for a worker of epoch ", wanted.value));
}

// How the CPU ranks of an epoch are connected.
bool CollectivesOverTcp(const ConfigureCommand& command) {
  const auto transport = command.config.transport.collective_transport;
  const bool by_hosts = transport == config::CollectiveTransport::kAuto;
  return by_hosts ? !command.assignment.one_host() : transport == config::CollectiveTransport::kTcp;
}

// Ranks of one host need no other interface than loopback.
std::string CollectiveListen(const WorkerOverrides& overrides, const ConfigureCommand& command) {
  if (!overrides.collective_listen.empty()) return overrides.collective_listen;
  return command.assignment.one_host() ? "127.0.0.1:0" : "";
}

}  // namespace

WorkerLoop::WorkerLoop(ControlStream& stream, WorkerOverrides overrides, const Clock& clock)
    : stream_(stream), overrides_(std::move(overrides)), clock_(clock) {
  stream_.OnEpochEnded([this] {
    MutexLock lock(interruptible_.mutex);
    InterruptIfOver();
  });
}

WorkerLoop::~WorkerLoop() {
  stream_.OnEpochEnded(nullptr);
  DropEpoch();
}

void WorkerLoop::InterruptIfOver() {
  const absl::Status over = stream_.CheckEpoch(interruptible_.epoch);
  if (over.ok()) return;
  if (interruptible_.communicator != nullptr) interruptible_.communicator->Abort(over);
  if (interruptible_.channel != nullptr) {
    interruptible_.channel->Close(std::string(over.message()));
  }
}

absl::Status WorkerLoop::Run() {
  while (true) {
    std::optional<Command> command = stream_.NextCommand(Deadline::After(kIdlePoll, clock_));
    if (!command.has_value()) continue;
    if (auto* stop = std::get_if<StopCommand>(&*command)) {
      return stop->reason.ok() ? failed_ : stop->reason;
    }
    Epoch epoch;
    absl::Status done;
    std::visit(
        [&](const auto& known) {
          if constexpr (requires { known.epoch; }) {
            epoch = known.epoch;
            done = Handle(known);
          }
        },
        *command);
    TANDEM_RETURN_IF_ERROR(broken_);
    // What the end of its epoch cuts short, such as a shutdown while loading, has not failed here.
    const bool over = !stream_.CheckEpoch(epoch).ok();
    failed_ = over ? absl::OkStatus() : done;
    if (!done.ok()) {
      if (over) {
        TANDEM_LOG(kInfo) << done.message();
      } else {
        TANDEM_LOG(kError) << done.message();
      }
      const absl::Status sent = stream_.SendFailed(epoch, done);
      if (!over) TANDEM_RETURN_IF_ERROR(sent);  // else the next command says why it is over
      continue;
    }
    if (state_ == State::kStepping) ServeSteps();
  }
}

absl::Status WorkerLoop::Handle(const ConfigureCommand& command) {
  TANDEM_RETURN_IF_ERROR(command.invalid);
  if (config_.has_value() && command.epoch <= config_->epoch) {
    return WrongEpoch(command.epoch, config_->epoch);
  }
  if (command.assignment.size > ShmGroup::kMaxRanks) {
    return absl::InvalidArgumentError(absl::StrCat("Configure: ", command.assignment.size,
                                                   " ranks, at most ", ShmGroup::kMaxRanks));
  }
  TANDEM_RETURN_IF_ERROR(broken_ = TryDevice());  // before any of its memory is freed
  DropEpoch();
  config_ = command;
  if (!overrides_.model.empty()) config_->config.model.path = overrides_.model;
  if (!overrides_.draft_model.empty() && !config_->config.model.draft_path.empty()) {
    config_->config.model.draft_path = overrides_.draft_model;
  }
  if (overrides_.device_index.has_value()) {
    config_->assignment.device_index = *overrides_.device_index;
  }
  if (int32_t& threads = config_->config.device.threads; threads == 0) {
    threads = config::DefaultThreads({}, static_cast<int32_t>(std::thread::hardware_concurrency()),
                                     command.assignment.ranks_on_host);
  }
  SetLogTag(absl::StrCat("rank ", command.assignment.rank));
  SetLogLevel(command.config.log_level);
  TANDEM_RETURN_IF_ERROR(OpenChannel(command));
  state_ = State::kConfigured;
  return absl::OkStatus();
}

// What breaks a device's context breaks it for the process: the worker ends, and another one can
// take its place.
absl::Status WorkerLoop::TryDevice() {
  if (model_ == nullptr) return absl::OkStatus();
  kernels::Backend& backend = model_->backend();
  backend.BeginEncode(kernels::EncodeMode::kRun);
  // Errors that are not the device's are the communicator's, which ends with the epoch.
  backend.SubmitAndWait(Deadline::After(config_->config.transport.step_timeout, clock_))
      .IgnoreError();
  return CheckDevice();
}

absl::Status WorkerLoop::CheckDevice() const {
  if (model_ == nullptr) return absl::OkStatus();
  return Annotate(model_->backend().Broken(), "the device takes no more work");
}

absl::Status WorkerLoop::OpenChannel(const ConfigureCommand& command) {
  if (command.config.transport.step_transport == config::StepTransport::kShm) {
    TANDEM_ASSIGN_OR_RETURN(channel_, transport::ShmChannel::Attach(
                                          command.assignment.step_channel_address, command.epoch));
  } else {
    auto queue = std::make_shared<transport::QueueChannel>(
        step::StepLimits::Of(command.config).MaxFrameBytes(), kStepFrames,
        [this](std::span<const uint8_t> frame, Deadline) { return stream_.SendStepResult(frame); },
        [](const std::string&) {});
    stream_.OnStepFrame([queue](std::string frame) {
      const absl::Status delivered = queue->Deliver(transport::Frame(frame.begin(), frame.end()),
                                                    Deadline::After(Duration::zero()));
      if (!delivered.ok()) queue->Close(std::string(delivered.message()));
    });
    channel_ = std::move(queue);
  }
  MutexLock lock(interruptible_.mutex);
  interruptible_.epoch = command.epoch;
  interruptible_.channel = channel_;
  InterruptIfOver();
  return absl::OkStatus();
}

void WorkerLoop::DropEpoch() {
  state_ = State::kGreeted;
  stream_.OnStepFrame(nullptr);
  {
    MutexLock lock(interruptible_.mutex);
    interruptible_.channel = nullptr;
    interruptible_.communicator = nullptr;
  }
  if (channel_ != nullptr) channel_->Close("the epoch ended");
  channel_ = nullptr;
  runner_ = nullptr;
  prepared_comm_ = nullptr;
}

RunnerOptions WorkerLoop::Options() const {
  return {.config = config_->config,
          .kv_cache_bytes = config_->assignment.kv_cache_bytes,
          .poison = std::getenv("TANDEM_POISON_STEPS") != nullptr};
}

absl::Status WorkerLoop::LoadModel() {
  const LoadOptions wanted{config_->config, config_->assignment};
  // A worker that is already loaded keeps its weights.
  if (model_ != nullptr && !config::NeedsReload(wanted.config, loaded_.config) &&
      wanted.assignment.SameWeights(loaded_.assignment)) {
    return absl::OkStatus();
  }
  model_ = nullptr;
  // Before there are threads that compute, so that they touch the memory that they will read.
  TANDEM_RETURN_IF_ERROR(cpus_.Use(wanted.assignment.cpus));
  uint64_t next_bytes = 0;
  auto progress = [&](uint64_t done, uint64_t total) {
    if (total < kProgressBytes || done < next_bytes) return;
    next_bytes = done + total / kProgressParts;
    stream_.SendLoading(config_->epoch, done, total).IgnoreError();  // a failure shows at Ready
  };
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<DescribedModel> described, DescribeModel(wanted));
  TANDEM_ASSIGN_OR_RETURN(const RunnerPlan plan, MakePlan(*described, Options()));
  TANDEM_RETURN_IF_ERROR(CheckMemory(plan));
  TANDEM_ASSIGN_OR_RETURN(model_, LoadWeights(std::move(described), progress));
  loaded_ = wanted;
  return absl::OkStatus();
}

// For workers that may run on other hosts than the coordinator, which checks its own host only.
absl::Status WorkerLoop::CheckMemory(const RunnerPlan& plan) const {
  const bool elsewhere = overrides_.external &&
                         config_->config.transport.step_transport == config::StepTransport::kGrpc;
  if (!elsewhere || config_->config.device.device != config::Device::kCpu) return absl::OkStatus();
  // Later the host's other ranks have theirs already.
  if (config_->epoch > Epoch{1}) {
    return CheckHostMemory(Options(), plan, /*ranks=*/1, AvailableMemoryBytes());
  }
  TANDEM_RETURN_IF_ERROR(
      CheckHostMemory(Options(), plan, config_->assignment.ranks_on_host, AvailableMemoryBytes()));
  return AwaitOthers("fits");  // so that no rank allocates before all have checked
}

// Machines differ in speed: only when all have loaded does the communicator's time begin.
absl::Status WorkerLoop::AwaitOthers(const std::string& what) const {
  if (config_->assignment.size == 1) return absl::OkStatus();
  const auto owner = stream_.MakeRendezvous(config_->epoch);
  transport::Rendezvous& rendezvous = *owner;
  const auto deadline = Deadline::After(kLoadTimeout, clock_);
  const auto key = [&](int rank) { return absl::StrCat(what, "/", rank); };
  const config::WorkerAssignment& own = config_->assignment;
  if (own.rank > 0) {
    TANDEM_RETURN_IF_ERROR(rendezvous.Put(key(own.rank), ""));
    return rendezvous.Get(key(0), deadline).status();
  }
  for (int rank = 1; rank < own.size; ++rank) {
    TANDEM_RETURN_IF_ERROR(rendezvous.Get(key(rank), deadline).status());
  }
  return rendezvous.Put(key(0), "");
}

absl::Status WorkerLoop::JoinCommunicator() {
  if (config_->assignment.size == 1) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(AwaitOthers("loaded"));
  auto rendezvous = stream_.MakeRendezvous(config_->epoch);
  const auto deadline = Deadline::After(kCommunicatorTimeout, clock_);
  kernels::Backend& backend = model_->backend();
  TANDEM_ASSIGN_OR_RETURN(prepared_comm_,
                          OpenCommunicator({.rank = config_->assignment.rank,
                                            .size = config_->assignment.size,
                                            .epoch = config_->epoch,
                                            .rendezvous = *rendezvous,
                                            .host_stream = backend.host_stream(),
                                            .device_stream = backend.device_stream(),
                                            .over_tcp = CollectivesOverTcp(*config_),
                                            .listen = CollectiveListen(overrides_, *config_),
                                            .deadline = deadline}));
  {
    MutexLock lock(interruptible_.mutex);
    interruptible_.communicator = prepared_comm_.get();
    InterruptIfOver();
  }
  return prepared_comm_->Join(deadline);
}

absl::Status WorkerLoop::Handle(const LoadCommand& command) {
  if (state_ != State::kConfigured) {
    return absl::FailedPreconditionError("Load belongs after Configure, once");
  }
  if (command.epoch != config_->epoch) return WrongEpoch(command.epoch, config_->epoch);
  state_ = State::kGreeted;
  TANDEM_RETURN_IF_ERROR(stream_.SendLoading(config_->epoch, 0, 0));
  TANDEM_RETURN_IF_ERROR(LoadModel());
  runner_ = std::make_unique<ModelRunner>(*model_, Options());
  TANDEM_ASSIGN_OR_RETURN(const RunnerPlan plan, runner_->Prepare());
  TANDEM_RETURN_IF_ERROR(JoinCommunicator());
  state_ = State::kReady;
  return stream_.SendReady(config_->epoch, plan.kv.NumBlocks(plan.num_kv_blocks), plan.Lines());
}

absl::Status WorkerLoop::Handle(const StartCommand& command) {
  if (state_ != State::kReady) {
    return absl::FailedPreconditionError("Start belongs after Ready, once");
  }
  if (command.epoch != config_->epoch) return WrongEpoch(command.epoch, config_->epoch);
  state_ = State::kGreeted;
  TANDEM_RETURN_IF_ERROR(
      runner_->Start(command.epoch, command.num_blocks, std::move(prepared_comm_)));
  state_ = State::kStepping;
  return stream_.SendStarted(command.epoch);
}

void WorkerLoop::ServeSteps() {
  const StepServer::Options options{.epoch = config_->epoch,
                                    .rank = static_cast<uint32_t>(config_->assignment.rank),
                                    .step_timeout = config_->config.transport.step_timeout};
  // Closed: a command is queued, or the coordinator is lost.
  StepServer(*channel_, *runner_, options, clock_).Serve();
}

}  // namespace tandem::worker
