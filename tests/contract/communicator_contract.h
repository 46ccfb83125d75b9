// The contract of worker::Communicator as tests; instantiate it for each implementation as
// channel_contract.h shows.
#ifndef TANDEM_TESTS_CONTRACT_COMMUNICATOR_CONTRACT_H_
#define TANDEM_TESTS_CONTRACT_COMMUNICATOR_CONTRACT_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "worker/comm/communicator.h"

namespace tandem::worker {

struct CommunicatorFactory {
  std::string name;
  // One communicator per stream, in rank order.
  std::function<std::vector<std::unique_ptr<Communicator>>(
      const std::vector<kernels::HostStream*>& streams)>
      make;
};

inline void PrintTo(const CommunicatorFactory& factory, std::ostream* out) { *out << factory.name; }
inline std::string CommunicatorFactoryName(
    const testing::TestParamInfo<CommunicatorFactory>& test) {
  return test.param.name;
}

class CommunicatorContract : public testing::TestWithParam<CommunicatorFactory> {};

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_CONTRACT_COMMUNICATOR_CONTRACT_H_
