// GenerationRun: many Generate calls at once over one channel.
//
// All prompts are in flight together. A call rejected with RESOURCE_EXHAUSTED before its first
// token is retried when another call of the run ends; it fails if no other call is left that could
// free capacity.
#ifndef TANDEM_CLIENT_GENERATION_RUN_H_
#define TANDEM_CLIENT_GENERATION_RUN_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/channel.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// Receives progress: one call at a time, from gRPC's threads.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // False: no answer of the run is wanted any more; calls end at their next message.
  virtual bool OnDelta(size_t index, const v1::GenerateResponse& delta) = 0;
  // Once per prompt, after its deltas.
  virtual void OnEnd(size_t index, const absl::Status& status) = 0;
};

// Run is called once, by one thread.
class GenerationRun {
 public:
  // `server` names the server in errors; no call takes longer than `timeout`.
  GenerationRun(std::shared_ptr<grpc::Channel> channel, std::string server, Duration timeout);

  // Returns once every request has ended. `requests` and `listener` are borrowed.
  void Run(const std::vector<v1::GenerateRequest>& requests, GenerationListener& listener);

 private:
  class Call;

  void Start(size_t index);
  bool OnDelta(size_t index, const v1::GenerateResponse& delta);
  // After the call's last callback.
  void OnCallEnd(size_t index, size_t ended_before, bool had_token, const absl::Status& status);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string server_;
  const Duration timeout_;
  const std::vector<v1::GenerateRequest>* requests_ = nullptr;
  GenerationListener* listener_ = nullptr;

  Mutex mutex_;
  CondVar all_ended_;
  std::deque<size_t> refused_ TANDEM_GUARDED_BY(mutex_);  // to be retried
  size_t in_flight_ TANDEM_GUARDED_BY(mutex_) = 0;
  size_t num_ended_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_GENERATION_RUN_H_
