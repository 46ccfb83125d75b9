// tandem_coordinator: serves a model over gRPC with one worker process per rank.
#include <iostream>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/cli/command.h"
#include "common/config/server_config.h"
#include "common/net/listen_socket.h"
#include "coordinator/api/grpc/grpc_server.h"
#include "coordinator/engine/engine_loop.h"
#include "coordinator/listener/descriptor_limit.h"
#include "coordinator/observe/measured_engine.h"
#include "coordinator/observe/metrics_port.h"
#include "coordinator/observe/server_state.h"
#include "coordinator/observe/trace_recorder.h"
#include "coordinator/startup/bring_up.h"
#include "coordinator/startup/http_gateway.h"
#include "coordinator/startup/memory_trimmer.h"
#include "coordinator/startup/model_file.h"
#include "coordinator/startup/open_edge.h"
#include "coordinator/startup/service_manager.h"
#include "coordinator/startup/stop_signal.h"

namespace tandem::coordinator {
namespace {

constexpr auto kShutdownTimeout = std::chrono::seconds(5);
// After a loss, workers that do not exit at once are killed.
constexpr auto kLossTimeout = std::chrono::milliseconds(500);

// Of looking after a server that runs: its memory, and whether its engine is alive.
constexpr auto kCarePeriod = std::chrono::seconds(2);

// The events the main thread waits for after start: a signal or the loss of the workers, and after
// a signal the end of the last request.
class Ending {
 public:
  explicit Ending(StopSignal& signal) : signal_(signal) {}
  // Called on the engine's thread.
  void Lost(const absl::Status& status) {
    {
      MutexLock lock(mutex_);
      lost_ = status;
    }
    drained_changed_.NotifyAll();
    signal_.Raise();
  }
  // Called on any thread.
  void Drained() {
    {
      MutexLock lock(mutex_);
      drained_ = true;
    }
    drained_changed_.NotifyAll();
  }
  // Waits for Drained. DEADLINE_EXCEEDED, or the error after a loss.
  absl::Status WaitDrained(Deadline deadline) {
    MutexLock lock(mutex_);
    drained_changed_.Wait(lock, deadline,
                          [&]() TANDEM_REQUIRES(mutex_) { return drained_ || !lost_.ok(); });
    if (!lost_.ok() || drained_) return lost_;
    return absl::DeadlineExceededError("requests are left");
  }
  // OK after a signal; the error after a loss. Calls `care` every now and then meanwhile.
  absl::Status Wait(const std::function<void()>& care) {
    while (!signal_.Wait(Deadline::After(kCarePeriod))) care();
    MutexLock lock(mutex_);
    return lost_;
  }

 private:
  StopSignal& signal_;
  Mutex mutex_;
  CondVar drained_changed_;
  absl::Status lost_ TANDEM_GUARDED_BY(mutex_);
  bool drained_ TANDEM_GUARDED_BY(mutex_) = false;
};

// Of a model whose file does not say: the last token's state is the only one that depends on all.
Pooling PoolingOf(const model::ModelSpec& spec) {
  switch (spec.pooling) {
    case model::PoolingType::kMean:
      return Pooling::kMean;
    case model::PoolingType::kCls:
      return Pooling::kCls;
    case model::PoolingType::kNone:
    case model::PoolingType::kLast:
      break;
  }
  return Pooling::kLast;
}

std::vector<std::string> NamesOf(const std::vector<AdapterFile>& adapters) {
  std::vector<std::string> names;
  for (const AdapterFile& adapter : adapters) names.push_back(adapter.module.name);
  return names;
}

ServingModel MakeServingModel(const config::ServerConfig& config, const ModelFile& model,
                              const Workers& workers,
                              std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  return {.name = model.spec.name,
          .architecture = model.spec.architecture,
          .quantization = model.spec.quantization,
          .adapters = NamesOf(model.adapters),
          .max_model_len = workers.usable_model_len(),
          .vocab_size = model.spec.vocab_size,
          .hidden_size = model.spec.hidden_size,
          .pooling = PoolingOf(model.spec),
          .tensor_parallel_size = workers.size,
          .max_num_seqs = workers.engine.scheduler.max_num_seqs,
          .clamp_max_tokens = config.clamp_max_tokens,
          .request_timeout = config.scheduling.request_timeout,
          .max_stream_bytes = config.max_stream_buffer.bytes,
          .tokenizer = tokenizer,
          .grammars = std::make_shared<GrammarCache>(tokenizer, model.spec.vocab_size)};
}

std::string ReadyLine(const std::string& address, const ModelFile& model, const Workers& workers) {
  // Those of workers that count their own cores are not known here.
  const int threads = workers.config.device.threads;
  return absl::StrCat("ready: listening on ", address, ", model ",
                      model.spec.name.empty() ? model.path : model.spec.name, " (",
                      model.spec.architecture, ", ", model.spec.quantization, "), ", workers.size,
                      " rank(s)", threads == 0 ? "" : absl::StrCat(" of ", threads, " thread(s)"),
                      " on ", config::NameOf(workers.config.device.device), ", ",
                      workers.engine.kv_cache.Text());
}

// A loss with what may have caused it: a worker that reads behind a file's new end gets SIGBUS.
absl::Status Explained(const absl::Status& lost, const ModelFile& model) {
  const std::string changes = model.Changes();
  if (lost.ok() || changes.empty()) return lost;
  return absl::Status(lost.code(), absl::StrCat(lost.message(), "; ", changes));
}

void WarnUnless(const absl::Status& status) {
  if (!status.ok()) {
    TANDEM_LOG(kWarning) << status.message();
  }
}

void Notify(std::string_view state) { WarnUnless(NotifyServiceManager(state)); }

// OK, or the error after a loss.
absl::Status Drain(EngineLoop& engine, Ending& ending, const std::string& signal,
                   Duration timeout) {
  const EngineStats stats = engine.Stats();
  TANDEM_LOG(kInfo) << signal << ": shutting down; " << stats.running << " running and "
                    << stats.waiting << " waiting requests have "
                    << absl::FormatDuration(absl::FromChrono(timeout)) << " to finish";
  engine.StopAdmission([&] { ending.Drained(); });
  absl::Status drained = ending.WaitDrained(Deadline::After(timeout));
  if (!absl::IsDeadlineExceeded(drained)) return drained;
  TANDEM_LOG(kWarning) << "the time to finish is over: requests are cancelled";
  return absl::OkStatus();
}

// What is counted, and the port that shows it.
struct Watched {
  explicit Watched(size_t num_ranks) : rank_times(num_ranks) {}

  RequestMetrics requests;
  RankTimes rank_times;
  TraceRecorder trace;
  std::unique_ptr<MetricsPort> port;  // null without --metrics-listen
};

// The metrics port shows the engine as long as this lives.
class Observed {
 public:
  Observed(MetricsPort* port, const std::string& model, const EngineLoop& engine,
           uint32_t block_size)
      : port_(port) {
    if (port_ == nullptr) return;
    port_->Serve(model, [&engine, block_size] {
      return Observation::Engine{
          .stats = engine.Stats(), .timings = engine.Timings(), .block_size = block_size};
    });
  }
  ~Observed() {
    if (port_ != nullptr) port_->StopServing();
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  MetricsPort* const port_;
};

// Waits for the HTTP gateway before the server reports that it is ready. If the wait times out, the
// server goes on without it: gRPC clients do not depend on it.
void WaitForHttp(HttpGateway* http, HttpGateway::Stage stage, const StopSignal& signal) {
  if (http == nullptr) return;
  WarnUnless(http->Wait(stage, [&] { return signal.raised(); }));
}

absl::Status ServeUntilStopped(const config::ServerConfig& config, const ModelFile& model,
                               Workers& workers,
                               std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                               StopSignal& signal, ServerState& state, Watched& watched,
                               GrpcServer& server, HttpGateway* http) {
  Ending ending(signal);
  std::unique_ptr<EngineCore> core = workers.MakeCore();
  core->set_trace(&watched.trace);
  core->set_explain([&model] { return model.Changes(); });
  EngineLoop engine(
      std::move(core),
      [&](const absl::Status& status) {
        state.SetBroken();
        ending.Lost(status);
      },
      [&](const absl::Status& loss, const std::function<bool()>& cancelled) {
        state.SetRecovering(true);
        absl::StatusOr<ReadyWorkers> ready = workers.supervisor->Recover(loss, cancelled);
        if (ready.ok()) state.SetRecovering(false);
        return ready;
      });
  MeasuredEngine measured(engine, watched.requests);
  WaitForHttp(http, HttpGateway::Stage::kListens, signal);
  server.Serve(MakeServingModel(config, model, workers, std::move(tokenizer)), measured,
               engine.capacity(), &watched.trace);
  const Observed observed(watched.port.get(), model.spec.name, engine,
                          workers.engine.kv_cache.block_size);
  WaitForHttp(http, HttpGateway::Stage::kServes, signal);
  if (!signal.raised()) {
    std::cout << ReadyLine(server.address(), model, workers) << std::endl;
    Notify("READY=1");
  }
  MemoryTrimmer trimmer;
  absl::Status ended = ending.Wait([&] {
    trimmer.Trim();
    state.SetStuck(engine.Late());
  });
  state.SetDraining();
  Notify("STOPPING=1");
  if (ended.ok()) ended = Drain(engine, ending, signal.name(), config.drain_timeout);
  ended = Explained(ended, model);
  if (!ended.ok()) {
    TANDEM_LOG(kInfo) << "a worker is lost, exiting";
  }
  const Duration patience = ended.ok() ? Duration(kShutdownTimeout) : Duration(kLossTimeout);
  engine.Shutdown();
  server.Shutdown(Deadline::After(patience));
  workers.supervisor->Shutdown(ended, Deadline::After(patience));
  return ended;
}

// Null without --http-listen.
absl::StatusOr<std::unique_ptr<HttpGateway>> StartHttp(const config::ServerConfig& config,
                                                       const OpenedEdge& opened,
                                                       const std::string& address,
                                                       MetricsPort* port) {
  if (config.http_listen.empty()) return nullptr;
  return HttpGateway::Start(GatewayFlags(config, opened, address), [port](bool up) {
    if (port != nullptr) port->SetHttpGateway(up);
  });
}

// What needs no model comes first: whatever can be wrong with it is said at once.
absl::Status Serve(const config::ServerConfig& config) {
  SetLogLevel(config.log_level);
  SetLogFormat(config.log_format);
  StopSignal signal;
  TANDEM_ASSIGN_OR_RETURN(const size_t max_connections,
                          RaiseDescriptorLimit(config.cluster.tensor_parallel_size));
  TANDEM_ASSIGN_OR_RETURN(net::ListenSocket socket,
                          net::ListenSocket::Bind("--listen", config.listen));
  ServerState state(static_cast<size_t>(config.cluster.tensor_parallel_size));
  Watched watched(state.Get().ranks.size());
  if (!config.metrics_listen.empty()) {
    TANDEM_ASSIGN_OR_RETURN(watched.port, MetricsPort::Start(config.metrics_listen, state,
                                                             watched.requests, watched.rank_times));
    TANDEM_LOG(kInfo) << "metrics and a status page on http://" << watched.port->address();
  }
  TANDEM_ASSIGN_OR_RETURN(OpenedEdge opened, OpenEdge(config));
  opened.edge.refusals = &watched.requests.refused;
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<GrpcServer> server,
      GrpcServer::Start(std::move(socket), max_connections, state, std::move(opened.edge)));
  TANDEM_LOG(kInfo) << "loading the model; " << server->address() << " answers when it is ready";
  // Ends before the server: its requests are over by then.
  TANDEM_ASSIGN_OR_RETURN(const auto http,
                          StartHttp(config, opened, server->address(), watched.port.get()));
  const auto stopped = [&] { return signal.raised(); };
  StartTime start_time;
  absl::StatusOr<ServedModel> model =
      OpenServedModel(config.worker.model, stopped, [&] { WarnUnless(start_time.Progressed()); });
  if (absl::IsCancelled(model.status())) return absl::OkStatus();
  if (!model.ok()) return model.status();
  const auto on_progress = [&](size_t rank, const RankProgress& progress) {
    state.SetProgress(rank, progress);
  };
  absl::StatusOr<Workers> workers = BringUp(
      config, model->file, stopped,
      {.on_progress = on_progress, .rank_times = &watched.rank_times, .trace = &watched.trace});
  if (absl::IsCancelled(workers.status())) return absl::OkStatus();
  if (!workers.ok()) return workers.status();
  return ServeUntilStopped(config, model->file, *workers, std::move(model->tokenizer), signal,
                           state, watched, *server, http.get());
}

}  // namespace
}  // namespace tandem::coordinator

int main(int argc, char** argv) {
  tandem::config::ServerConfig config;
  tandem::config::FieldList fields;
  config.ForEach(fields);
  tandem::cli::Command command(
      "tandem_coordinator",
      "tandem_coordinator: serves a GGUF model over gRPC, one worker process per rank.",
      "Examples:\n"
      "  tandem_coordinator --model models/demo.gguf\n"
      "  tandem_coordinator --model hf:OWNER/REPO:Q4_K_M\n"
      "  tandem_coordinator --model big.gguf --tensor-parallel-size 2 --max-num-seqs 64\n"
      "  tandem_coordinator --model m.gguf --workers external --worker-listen 127.0.0.1:50052 \\\n"
      "      --worker-token-file token\n");
  command.Add(fields);
  command.OnCheck([&] {
    tandem::config::Complete(config);
    return tandem::config::Validate(config);
  });
  command.OnRun([&] { return tandem::coordinator::Serve(config); });
  return command.Main(argc, argv);
}
