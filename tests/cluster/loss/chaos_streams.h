// ChaosStreams: many requests to a server at once, and when their tokens came.
#ifndef TANDEM_TESTS_CLUSTER_LOSS_CHAOS_STREAMS_H_
#define TANDEM_TESTS_CLUSTER_LOSS_CHAOS_STREAMS_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::testing {

class ChaosStreams {
 public:
  // Starts the requests, one stream each.
  ChaosStreams(const std::string& server, std::vector<v1::GenerateRequest> requests);
  ~ChaosStreams();  // waits for their ends

  // Waits until all streams together have received `count` tokens. False if the deadline passes.
  bool WaitTokens(size_t count, Deadline deadline);
  // Waits until each stream that has begun and not ended has another one. False likewise.
  bool WaitTokenOfEach(Deadline deadline);
  size_t num_tokens() const;
  // Waits for the ends. Each answer is all that its stream received, serialized: text, tokens,
  // log-probabilities, finish reason, usage; or the error.
  std::vector<std::string> Answers();
  // The time from `begin` to the first token after the longest gap, of those that end before `end`.
  Duration PauseBetween(TimePoint begin, TimePoint end) const;

 private:
  class Call;

  void Delivered(Call& call, int num_tokens);
  void Ended(Call& call);

  std::unique_ptr<v1::Generation::Stub> stub_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TimePoint> tokens_;  // guarded by mutex_
  size_t num_ended_ = 0;           // guarded by mutex_
  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_LOSS_CHAOS_STREAMS_H_
