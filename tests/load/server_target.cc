// Target over a server, with its statistics and a progress bar.
#include <cstdlib>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "tests/load/backend.h"
#include "tests/load/load_run.h"
#include "tests/load/openai_backend.h"
#include "tests/load/progress_bar.h"
#include "tests/load/stats_poller.h"
#include "tests/load/tandem_backend.h"
#include "tests/load/target.h"

namespace tandem::load {
namespace {

constexpr Duration kConnectTimeout = std::chrono::seconds(30);

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const LoadOptions& options) {
  const RequestSettings settings{.ignore_eos = options.ignore_eos,
                                 .temperature = options.temperature,
                                 .priority = options.priority,
                                 .adapter = options.adapter,
                                 .timeout = options.timeout,
                                 .slow_read_delay = options.slow_read_delay};
  if (options.backend == BackendKind::kTandem) {
    return TandemBackend::Connect(options.connection, settings);
  }
  const char* api_key = std::getenv("OPENAI_API_KEY");
  return std::make_unique<OpenAiBackend>(OpenAiOptions{.connection = options.connection,
                                                       .endpoint = options.endpoint,
                                                       .model = options.model,
                                                       .api_key = api_key != nullptr ? api_key : "",
                                                       .vocab_size = options.dataset.vocab_size},
                                         settings);
}

class ServerTarget final : public Target {
 public:
  ServerTarget(std::unique_ptr<Backend> backend, const LoadOptions& options)
      : backend_(std::move(backend)), options_(options) {}

  absl::StatusOr<ModelFacts> Model() override {
    return backend_->Model(Deadline::After(kConnectTimeout));
  }
  absl::StatusOr<uint32_t> CountTokens(const std::string& text) override {
    return backend_->CountTokens(text);
  }
  absl::StatusOr<RunRecord> Run(const std::vector<LoadRequest>& requests,
                                const RunSettings& settings) override;
  void Stop() override {
    MutexLock lock(mutex_);
    stopped_ = true;
    if (current_ != nullptr) current_->Stop();
  }

 private:
  const std::unique_ptr<Backend> backend_;
  const LoadOptions& options_;
  Mutex mutex_;
  LoadRun* current_ TANDEM_GUARDED_BY(mutex_) = nullptr;
  bool stopped_ TANDEM_GUARDED_BY(mutex_) = false;
};

absl::StatusOr<RunRecord> ServerTarget::Run(const std::vector<LoadRequest>& requests,
                                            const RunSettings& settings) {
  LoadRun run(*backend_, requests, settings);
  {
    MutexLock lock(mutex_);
    if (stopped_) return absl::CancelledError("interrupted");
    current_ = &run;
  }
  StatsPoller poller(*backend_, run.start(), options_.stats_interval);
  RunRecord record;
  {
    const ProgressBar bar(run, requests.size(), options_.progress);
    record = run.Run();
  }
  record.stats = poller.Finish();
  MutexLock lock(mutex_);
  current_ = nullptr;
  return record;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Target>> ConnectServer(const LoadOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, MakeBackend(options));
  return std::make_unique<ServerTarget>(std::move(backend), options);
}

}  // namespace tandem::load
