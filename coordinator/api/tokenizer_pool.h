// TokenizerPool: a few threads for work proportional to the length of a text, kept out of RPC
// callbacks. Long texts have a separate queue, against head-of-line blocking of short ones.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_TOKENIZER_POOL_H_
#define TANDEM_COORDINATOR_API_TOKENIZER_POOL_H_

#include <algorithm>
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
  // Queue bounds, in jobs.
  struct Limits {
    size_t short_text_bytes = 64 * 1024;
    size_t short_jobs = 0;
    size_t long_jobs = 0;

    // For a server that takes at most `max_requests`, running and queued. At most 64 long texts
    // wait; their bytes are bounded by a ByteBudget.
    static Limits For(size_t max_requests) {
      return {.short_jobs = max_requests, .long_jobs = std::min<size_t>(max_requests, 64)};
    }
  };

  explicit TokenizerPool(const Limits& limits);
  ~TokenizerPool();  // runs queued jobs

  // Runs `job`, for a text of `bytes` bytes, on a thread of the pool. RESOURCE_EXHAUSTED if the
  // queue is full; `job` is not run then.
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
