// OpenAiBackend: a server of OpenAI's completions API under load, over HTTP with libcurl: one
// thread drives all requests. A streamed choice counts as a token until the server reports usage.
#ifndef TANDEM_TESTS_LOAD_OPENAI_BACKEND_H_
#define TANDEM_TESTS_LOAD_OPENAI_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/connection.h"
#include "common/base/mutex.h"
#include "tests/load/backend.h"

namespace tandem::load {

struct OpenAiOptions {
  client::Connection connection;  // `server` is HOST:PORT or a URL without a path
  std::string endpoint;           // "/v1/completions"
  std::string model;              // empty: the server's first
  std::string api_key;            // empty: none is sent
  uint32_t vocab_size = 0;        // which the API does not tell
};

class OpenAiBackend : public Backend {
 public:
  OpenAiBackend(const OpenAiOptions& options, const RequestSettings& settings);
  ~OpenAiBackend() override;

  absl::StatusOr<ModelFacts> Model(Deadline deadline) override;
  // The API has no tokenizer: four bytes are taken for one token.
  absl::StatusOr<uint32_t> CountTokens(const std::string& text) override;
  absl::StatusOr<StatsPoint> Stats(Deadline deadline) override;
  void Start(const LoadRequest& request, AnswerListener& listener) override;
  void CancelAll() override;

 private:
  class Transfer;
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  // The thread: moves all transfers forward.
  void Drive();
  void TakeNew();
  void EndFinished();
  // Those that began before CancelAll was called.
  void EndCancelled();

  const OpenAiOptions options_;
  const RequestSettings settings_;
  const std::string base_url_;
  void* const multi_;    // CURLM
  Transfers transfers_;  // of the thread
  Mutex mutex_;
  std::string model_ TANDEM_GUARDED_BY(mutex_);
  Transfers new_ TANDEM_GUARDED_BY(mutex_);
  uint64_t num_started_ TANDEM_GUARDED_BY(mutex_) = 0;
  uint64_t num_cancelled_ TANDEM_GUARDED_BY(mutex_) = 0;  // of the first that were started
  std::atomic<bool> close_{false};
  std::thread thread_;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_OPENAI_BACKEND_H_
