// StubService: a server of Tandem's API that computes nothing: it streams token ids as fast as it
// can, or as badly as it is told to.
#ifndef TANDEM_TESTS_LOAD_STUB_SERVICE_H_
#define TANDEM_TESTS_LOAD_STUB_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::load {

struct StubBehaviour {
  uint32_t tokens_per_message = 1;
  Duration token_interval{};  // between messages
  uint32_t refuse_every = 0;  // each request of this number is refused; 0: none
  uint64_t die_after = 0;     // calls `die` after this many messages; 0: never
  std::function<void()> die{};
  std::function<void(const v1::GenerateRequest&)> on_request{};  // from any thread
};

// Thread-safe. Answers have max_tokens tokens; a prompt's text has a token per byte.
class StubService final : public v1::Generation::CallbackService {
 public:
  explicit StubService(StubBehaviour behaviour) : behaviour_(std::move(behaviour)) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const v1::DetokenizeRequest* request,
                                       v1::DetokenizeResponse* response) override;
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest* request,
                                         v1::GetModelInfoResponse* response) override;
  grpc::ServerUnaryReactor* GetStats(grpc::CallbackServerContext* context,
                                     const v1::GetStatsRequest* request,
                                     v1::GetStatsResponse* response) override;

 private:
  class Answer;

  // A message is about to be written.
  void CountMessage();

  const StubBehaviour behaviour_;
  std::atomic<uint64_t> num_requests_{0};
  std::atomic<uint64_t> num_messages_{0};
  std::atomic<int64_t> running_{0};
};

// A stub server on a free port of the loopback, with gRPC's own health service.
class StubServer {
 public:
  // `listen` is HOST:PORT, port 0 for a free one. UNAVAILABLE if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<StubServer>> Start(const std::string& listen,
                                                           StubBehaviour behaviour);
  ~StubServer();

  const std::string& address() const { return address_; }
  // Cancels what is running.
  void Shutdown();

 private:
  explicit StubServer(StubBehaviour behaviour);

  StubService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_STUB_SERVICE_H_
