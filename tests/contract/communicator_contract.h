// The contract of worker::Communicator as tests; instantiate it for each implementation as
// channel_contract.h shows.
#ifndef TANDEM_TESTS_CONTRACT_COMMUNICATOR_CONTRACT_H_
#define TANDEM_TESTS_CONTRACT_COMMUNICATOR_CONTRACT_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "worker/comm/communicator.h"

namespace tandem::worker {

// A rank's communicator, and the stream that it enqueues on.
class ContractRank {
 public:
  virtual ~ContractRank() = default;
  virtual Communicator& comm() = 0;
  // Runs what was enqueued since the last call, to its end or to the first error.
  virtual absl::Status Run(Deadline deadline) = 0;
};

struct CommunicatorFactory {
  std::string name;
  // `size` ranks, in order.
  std::function<std::vector<std::unique_ptr<ContractRank>>(int size)> make;
  // The ranks of a group know of each other: an error names the missing ones, an abort ends the
  // collectives of all, and collectives that differ are found out.
  bool ranks_know_each_other = true;
  // An abort ends the others' Join, too.
  bool aborts_end_joins_of_others = true;
};

// Ranks on host streams, with the communicators that `make` gives them.
std::vector<std::unique_ptr<ContractRank>> OnHostStreams(
    int size, const std::function<std::vector<std::unique_ptr<Communicator>>(
                  const std::vector<kernels::HostStream*>& streams)>& make);

inline void PrintTo(const CommunicatorFactory& factory, std::ostream* out) { *out << factory.name; }
inline std::string CommunicatorFactoryName(
    const testing::TestParamInfo<CommunicatorFactory>& test) {
  return test.param.name;
}

class CommunicatorContract : public testing::TestWithParam<CommunicatorFactory> {};

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_CONTRACT_COMMUNICATOR_CONTRACT_H_
