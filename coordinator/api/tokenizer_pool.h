// TokenizerPool: a few threads for work that takes as long as a text is, so that an RPC's callback
// never does it. Long texts queue apart: they delay each other, and no short one.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_TOKENIZER_POOL_H_
#define TANDEM_COORDINATOR_API_TOKENIZER_POOL_H_

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/queue.h"

namespace tandem::coordinator {

class TokenizerPool {
 public:
  using Job = std::function<void()>;
  // Bounds of what waits, in jobs. With texts of at most 4 MB, gRPC's limit, that is 512 MB.
  struct Limits {
    size_t short_text_bytes = 64 * 1024;
    size_t short_jobs = 4096;
    size_t long_jobs = 64;
  };

  TokenizerPool() : TokenizerPool(Limits{}) {}
  explicit TokenizerPool(const Limits& limits);
  ~TokenizerPool();  // runs what waits

  // Runs `job`, about a text of so many bytes, on a thread of the pool. RESOURCE_EXHAUSTED when too
  // many wait; `job` does not run then.
  absl::Status Run(size_t bytes, Job job);

 private:
  void Work(BoundedQueue<Job>& jobs);

  const Limits limits_;
  BoundedQueue<Job> short_;
  BoundedQueue<Job> long_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TOKENIZER_POOL_H_
