// TransportConfig: how steps are sent between coordinator and workers, and collectives between
// workers.
#ifndef TANDEM_COMMON_CONFIG_TRANSPORT_CONFIG_H_
#define TANDEM_COMMON_CONFIG_TRANSPORT_CONFIG_H_

#include <chrono>
#include <utility>

#include "common/config/field.h"

namespace tandem::config {

enum class StepTransport { kShm, kGrpc };
template <>
struct EnumNames<StepTransport> {
  static constexpr std::pair<StepTransport, const char*> kNames[] = {
      {StepTransport::kShm, "shm"}, {StepTransport::kGrpc, "grpc"}};
};

enum class CollectiveTransport { kAuto, kShm, kTcp };
template <>
struct EnumNames<CollectiveTransport> {
  static constexpr std::pair<CollectiveTransport, const char*> kNames[] = {
      {CollectiveTransport::kAuto, "auto"},
      {CollectiveTransport::kShm, "shm"},
      {CollectiveTransport::kTcp, "tcp"}};
};

struct TransportConfig {
  StepTransport step_transport = StepTransport::kShm;
  CollectiveTransport collective_transport = CollectiveTransport::kAuto;
  Duration step_timeout = std::chrono::seconds(60);
  // Tokens and timings need kilobytes, a scored prompt token up to 264 bytes; room for the logits
  // of a small vocabulary.
  ByteSize max_result_bytes{8 << 20};

  void ForEach(FieldList& visit) {
    visit.BeginSection("Transport");
    visit(step_transport,
          {.flag = "--step-transport", .help = "shared memory, or the gRPC control stream"});
    visit(collective_transport,
          {.flag = "--collective-transport",
           .help = "between CPU ranks: shared memory, encrypted TCP, or (auto) TCP where ranks run "
                   "on several hosts; GPUs use NCCL"});
    visit(step_timeout, {.flag = "--step-timeout",
                         .help = "the longest that a step may take; a number is seconds",
                         .least = 0.1,
                         .most = 86400});
    visit(max_result_bytes,
          {.flag = "--max-result-bytes",
           .help = "the largest result of a step; limits how many prompt tokens a step may score",
           .least = 1 << 16,
           .most = 1 << 30});
  }
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_TRANSPORT_CONFIG_H_
