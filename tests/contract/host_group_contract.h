// The contract of transport::HostGroup as tests; instantiate it for each implementation as
// channel_contract.h shows.
#ifndef TANDEM_TESTS_CONTRACT_HOST_GROUP_CONTRACT_H_
#define TANDEM_TESTS_CONTRACT_HOST_GROUP_CONTRACT_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/transport/host_group.h"
#include "gtest/gtest.h"

namespace tandem::transport {

struct HostGroupFactory {
  std::string name;
  // One end per rank.
  std::function<std::vector<std::unique_ptr<HostGroup>>(int size)> make;
};

inline void PrintTo(const HostGroupFactory& factory, std::ostream* out) { *out << factory.name; }
inline std::string HostGroupFactoryName(const testing::TestParamInfo<HostGroupFactory>& test) {
  return test.param.name;
}

class HostGroupContract : public testing::TestWithParam<HostGroupFactory> {};

}  // namespace tandem::transport

#endif  // TANDEM_TESTS_CONTRACT_HOST_GROUP_CONTRACT_H_
