// Client: one request and its stream. Checks every update against what the request must be answered
// with, and that it ends once.
#ifndef TANDEM_TESTS_SIM_CLIENT_H_
#define TANDEM_TESTS_SIM_CLIENT_H_

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "coordinator/engine/request.h"
#include "tests/sim/circumstances.h"
#include "tests/sim/expected.h"

namespace tandem::sim {

class Client : public coordinator::TokenStream {
 public:
  // Stops its request at the `stop_after`th token. `is_poison`: no worker survives it.
  Client(Expected expected, coordinator::Request request, size_t stop_after, bool is_poison,
         Circumstances& circumstances, const Clock& clock);

  coordinator::Taken OnUpdate(coordinator::StreamUpdate update) override;
  void Flush() override;

  // The request, with `stream` still to be set.
  const coordinator::Request& request() const { return request_; }
  void set_handle(coordinator::RequestHandle handle) { handle_ = handle; }
  coordinator::RequestHandle handle() const { return handle_; }
  // The engine was told so, and all that it computed before has been received.
  void NoteCancelled(TimePoint now);
  // TimePoint::max() unless it was cancelled.
  TimePoint cancelled_at() const { return cancelled_at_; }
  // The moment from which nobody waits for it, TimePoint::max() if there is none.
  TimePoint deadline() const { return request_.deadline; }
  // Its last Flush was called.
  bool over() const { return flushed_; }
  size_t num_tokens() const { return num_tokens_; }

 private:
  void CheckTokens(const coordinator::StreamUpdate& update);
  bool cancelled() const { return cancelled_at_ != TimePoint::max(); }
  void CheckUsage(const coordinator::Usage& usage);
  void CheckEnd(const coordinator::StreamUpdate& update) const;
  void CheckFailure(const absl::Status& status) const;
  void Require(bool holds, const char* what) const;

  const Expected expected_;
  const coordinator::Request request_;
  const size_t stop_after_;
  const bool is_poison_;
  Circumstances& circumstances_;
  const Clock& clock_;
  const uint64_t losses_before_;
  coordinator::RequestHandle handle_ = 0;
  size_t num_tokens_ = 0;  // received
  size_t num_prompt_logprobs_ = 0;
  std::optional<uint32_t> cached_tokens_;  // from the first result on
  TimePoint cancelled_at_ = TimePoint::max();
  int updates_after_cancel_ = 0;
  bool ended_ = false;    // by an update or a stop
  bool stopped_ = false;  // by this stream
  bool flushed_ = false;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_CLIENT_H_
