// What tests of the engine share: an engine on simulated workers, and streams that remember.
#ifndef TANDEM_TESTS_COORDINATOR_ENGINE_ENGINE_FIXTURE_H_
#define TANDEM_TESTS_COORDINATOR_ENGINE_ENGINE_FIXTURE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/engine/engine_core.h"
#include "tests/coordinator/cluster/simulated_worker.h"

namespace tandem::coordinator {

// Thread-safe: a writer's thread writes, the test's waits.
class RecordingStream : public TokenStream {
 public:
  struct Record {
    std::vector<TokenId> tokens;
    std::vector<TokenLogprobs> logprobs;         // of tokens, when asked for
    std::vector<TokenLogprobs> prompt_logprobs;  // from the second prompt token on, likewise
    std::vector<float> embedding;
    int num_ends = 0;  // 1 once the end was flushed
    FinishReason reason = FinishReason::kNone;
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string message;
    Usage usage;
  };

  // Ends the request at the `stop_after`th token. `on_token` runs first in an update with tokens.
  explicit RecordingStream(size_t stop_after = SIZE_MAX, std::function<void()> on_token = nullptr)
      : stop_after_(stop_after), on_token_(std::move(on_token)) {}

  Taken OnUpdate(StreamUpdate update) override;
  void Flush() override;

  Record record() const;
  // Waits for the end, at most a minute. False when it did not come.
  bool WaitEnd();
  // Waits for that many tokens.
  bool WaitTokens(size_t count);

 private:
  const size_t stop_after_;
  const std::function<void()> on_token_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Record record_;      // guarded by mutex_
  bool over_ = false;  // guarded by mutex_
};

// An engine on simulated workers.
struct SimulatedEngine {
  int ranks = 2;
  SimulatedModel model;
  std::vector<SimulatedScript> scripts;  // by rank
  EngineConfig config;                   // its groups say blocks and windows
  const Clock* clock = &Clock::System();
  config::StepTransport transport = config::StepTransport::kShm;

  // 16 sequences, blocks of 4 tokens, a full group of 64 blocks, contexts of up to 64 tokens.
  static SimulatedEngine Small();
  // The workers are up and running. `workers` gets them, for tests that kill one; the engine owns
  // them.
  std::unique_ptr<EngineCore> Make(std::vector<SimulatedWorker*>* workers = nullptr) const;
  // New workers, up and running in a later epoch, for EngineCore::Resume.
  ReadyWorkers MakeWorkers(Epoch epoch, std::vector<SimulatedWorker*>* workers = nullptr) const;
  // The engine on other workers, one per rank.
  std::unique_ptr<EngineCore> MakeOn(std::vector<std::unique_ptr<WorkerClient>> workers) const;
  config::WorkerConfig WorkerOf() const;
  config::WorkerAssignment AssignmentOf(int rank) const;
  WorkerGroup Bring(std::vector<std::unique_ptr<WorkerClient>> workers, Epoch epoch) const;
  // Of all KV groups: blocks, and the model with their windows.
  std::vector<uint32_t> NumBlocks() const;
  SimulatedModel Model() const;
};

// A greedy request for `max_tokens` tokens after a prompt of `prompt_len` tokens that depends on
// `id`.
Request MakeRequest(const std::string& id, size_t prompt_len, uint32_t max_tokens,
                    std::shared_ptr<TokenStream> stream);

// A step, after which the engine's structures are sound.
void ExpectStep(EngineCore& core);
// Steps until nothing is left, and every block is free.
void RunAll(EngineCore& core);

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_ENGINE_ENGINE_FIXTURE_H_
