// Backend: an API under load. One implementation per protocol.
#ifndef TANDEM_TESTS_LOAD_BACKEND_H_
#define TANDEM_TESTS_LOAD_BACKEND_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "tests/load/dataset.h"
#include "tests/load/request.h"
#include "tests/load/run_record.h"

namespace tandem::load {

// What to do after a message.
enum class Next { kRead, kReadLater, kCancel };

// The server's own counts; 0 if it gives none.
struct ServerUsage {
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;
};

// Receives one request's answer, one call at a time, from the backend's threads.
class AnswerListener {
 public:
  virtual ~AnswerListener() = default;
  // A message with tokens arrived.
  virtual Next OnTokens(uint32_t num_tokens) = 0;
  // The last call. OK: the answer is complete.
  virtual void OnEnd(const absl::Status& status, const ServerUsage& usage) = 0;
};

// Options of every request.
struct RequestSettings {
  bool ignore_eos = false;
  std::optional<float> temperature{};
  std::optional<int32_t> priority{};
  std::string adapter{};       // of the Tandem backend
  Duration timeout{};          // UNAVAILABLE or DEADLINE_EXCEEDED ends a request by then
  Duration slow_read_delay{};  // of Next::kReadLater
};

// Thread-safe. REQUIRES: every request has ended when it is destroyed.
class Backend {
 public:
  virtual ~Backend() = default;

  // Also shows that the server answers.
  virtual absl::StatusOr<ModelFacts> Model(Deadline deadline) = 0;
  virtual absl::StatusOr<uint32_t> CountTokens(const std::string& text) = 0;
  // UNIMPLEMENTED if the API has no statistics. `at_s` is left 0.
  virtual absl::StatusOr<StatsPoint> Stats(Deadline deadline) = 0;
  // Returns at once; the listener's OnEnd comes in every case, possibly before this returns. Both
  // are borrowed until then.
  virtual void Start(const LoadRequest& request, AnswerListener& listener) = 0;
  // Requests in flight end soon, as CANCELLED.
  virtual void CancelAll() = 0;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_BACKEND_H_
