// WorkerDriver: real worker processes driven step by step, without an engine: prefill in chunks
// with logits of chosen positions, greedy decode. One sequence at a time, on blocks handed out
// backwards so that block tables matter.
#ifndef TANDEM_TESTS_CLUSTER_WORKER_DRIVER_H_
#define TANDEM_TESTS_CLUSTER_WORKER_DRIVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/kvcache/kv_config.h"
#include "coordinator/startup/bring_up.h"

namespace tandem::testing {

// Options for tiny models: f32 cache, one thread per worker, the worker program of this build.
config::ServerConfig TestServerConfig(const std::string& model_path);

class WorkerDriver {
 public:
  static absl::StatusOr<std::unique_ptr<WorkerDriver>> Start(const config::ServerConfig& options);

  // The next epoch, over the workers that live and others in place of those that ended.
  absl::Status BringAgain();
  // Forgets the sequence; the next one begins at position 0.
  void Reset();
  // Feeds `tokens` in chunks of at most `chunk`; returns the logits of the positions in `wanted`,
  // in order.
  absl::StatusOr<std::vector<std::vector<float>>> Prefill(const std::vector<TokenId>& tokens,
                                                          const std::vector<int>& wanted,
                                                          uint32_t chunk);
  // Feeds one token and returns the greedily sampled next one.
  absl::StatusOr<TokenId> Decode(TokenId token);

  uint32_t adapter = 0;  // of the sequence: step::SequenceEntry::adapter

 private:
  WorkerDriver(coordinator::Workers workers, uint32_t block_size)
      : workers_(std::move(workers)), block_size_(block_size) {}
  // Of a step that begins at position `begin` and ends at `context_len_`.
  step::GroupDeltas TablesOf(const coordinator::KvGroup& group, uint32_t begin) const;
  absl::StatusOr<step::StepResult> Step(const std::vector<TokenId>& tokens,
                                        std::vector<step::RowRequest> rows);

  coordinator::Workers workers_;
  const uint32_t block_size_;
  uint64_t last_step_ = 0;
  uint32_t context_len_ = 0;
};

// Greedy continuation of `prompt`: `count` tokens.
absl::StatusOr<std::vector<TokenId>> GreedyTokens(WorkerDriver& driver,
                                                  const std::vector<TokenId>& prompt, size_t count);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_WORKER_DRIVER_H_
