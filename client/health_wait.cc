#include "client/health_wait.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"

namespace tandem::client {
namespace {

namespace health = grpc::health::v1;

constexpr Duration kPause = std::chrono::milliseconds(100);

// "" once it serves, else its status or error.
absl::StatusOr<std::string> Ask(health::Health::Stub& stub, const std::string& server,
                                const std::string& service, Deadline deadline) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(DeadlineAfter(deadline.Left()));
  health::HealthCheckRequest request;
  request.set_service(service);
  health::HealthCheckResponse response;
  const grpc::Status status = stub.Check(&context, request, &response);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
      status.error_code() == grpc::StatusCode::NOT_FOUND) {
    return FromGrpc(status, server);
  }
  if (!status.ok()) return status.error_message();
  if (response.status() == health::HealthCheckResponse::SERVING) return std::string();
  return absl::StrCat("it says ",
                      health::HealthCheckResponse::ServingStatus_Name(response.status()));
}

}  // namespace

absl::Status WaitUntilServing(const std::shared_ptr<grpc::Channel>& channel,
                              const std::string& server, const std::string& service,
                              Duration timeout) {
  const std::unique_ptr<health::Health::Stub> stub = health::Health::NewStub(channel);
  const Deadline deadline = Deadline::After(timeout);
  std::string last;
  do {
    absl::StatusOr<std::string> said = Ask(*stub, server, service, deadline);
    if (!said.ok()) return said.status();
    if (said->empty()) return absl::OkStatus();
    last = *said;
    std::this_thread::sleep_for(std::min(kPause, deadline.Left()));
  } while (!deadline.Passed());
  return absl::DeadlineExceededError(absl::StrCat(server, " does not serve after ",
                                                  absl::FormatDuration(absl::FromChrono(timeout)),
                                                  ": ", last));
}

}  // namespace tandem::client
