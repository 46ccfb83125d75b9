// Messages of the control stream between coordinator and workers. The first byte says from which
// end. A configuration that is accepted survives the way there and back.
#include <string>

#include "common/base/check.h"
#include "common/config/configure_codec.h"
#include "common/config/worker_assignment.h"
#include "common/config/worker_config.h"
#include "proto/tandem/v1/worker.pb.h"
#include "tests/fuzz/target.h"

namespace tandem::fuzz {
namespace {

bool TakeConfigure(const v1::Configure& message) {
  config::WorkerConfig worker;
  config::WorkerAssignment assignment;
  const absl::Status status = config::FromProto(message, worker, assignment);
  if (!status.ok()) {
    TANDEM_CHECK(!status.message().empty());
    TANDEM_CHECK(status.message().find('\n') == absl::string_view::npos) << status;
    return false;
  }
  v1::Configure again, third;
  config::ToProto(worker, assignment, again);
  TANDEM_CHECK_OK(config::FromProto(again, worker, assignment));
  config::ToProto(worker, assignment, third);
  TANDEM_CHECK(again.SerializeAsString() == third.SerializeAsString());
  return true;
}

Bytes Prefixed(uint8_t first, const std::string& rest) {
  Bytes bytes(rest.begin(), rest.end());
  bytes.insert(bytes.begin(), first);
  return bytes;
}

}  // namespace

bool Take(std::span<const uint8_t> input) {
  if (input.empty()) return false;
  const auto size = static_cast<int>(input.size() - 1);
  if (input[0] % 2 == 0) {
    v1::WorkerMessage message;
    return message.ParseFromArray(input.data() + 1, size);
  }
  v1::CoordinatorMessage message;
  if (!message.ParseFromArray(input.data() + 1, size)) return false;
  return !message.has_configure() || TakeConfigure(message.configure());
}

std::vector<Bytes> Seeds() {
  v1::WorkerMessage hello;
  hello.mutable_hello();
  v1::CoordinatorMessage configure;
  config::WorkerConfig worker;
  config::WorkerAssignment assignment;
  config::ToProto(worker, assignment, *configure.mutable_configure());
  return {Prefixed(0, hello.SerializeAsString()), Prefixed(1, configure.SerializeAsString())};
}

}  // namespace tandem::fuzz
