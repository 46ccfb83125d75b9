// TandemBackend: Tandem's gRPC API under load, on gRPC's callback API: no thread per request.
#ifndef TANDEM_TESTS_LOAD_TANDEM_BACKEND_H_
#define TANDEM_TESTS_LOAD_TANDEM_BACKEND_H_

#include <memory>
#include <string>
#include <unordered_map>

#include "client/connection.h"
#include "common/base/mutex.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/load/backend.h"

namespace tandem::load {

class TandemBackend : public Backend {
 public:
  // INVALID_ARGUMENT for a connection that is not valid, or a file of it that can't be used.
  static absl::StatusOr<std::unique_ptr<Backend>> Connect(const client::Connection& connection,
                                                          const RequestSettings& settings);

  absl::StatusOr<ModelFacts> Model(Deadline deadline) override;
  absl::StatusOr<uint32_t> CountTokens(const std::string& text) override;
  absl::StatusOr<StatsPoint> Stats(Deadline deadline) override;
  void Start(const LoadRequest& request, AnswerListener& listener) override;
  void CancelAll() override;

 private:
  class Call;

  TandemBackend(std::shared_ptr<grpc::Channel> channel, std::string server,
                const RequestSettings& settings);

  const std::string server_;
  const RequestSettings settings_;
  const std::unique_ptr<v1::Generation::Stub> stub_;
  Mutex mutex_;
  std::unordered_map<const Call*, std::shared_ptr<grpc::ClientContext>> in_flight_
      TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_TANDEM_BACKEND_H_
