// Collectives: where the ranks of an epoch wait for each other in every step.
#ifndef TANDEM_TESTS_SIM_COLLECTIVES_H_
#define TANDEM_TESTS_SIM_COLLECTIVES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace tandem::sim {

class Collectives {
 public:
  // Calls `done` of all ranks as soon as `size` of them have joined.
  void Join(Epoch epoch, StepId step, size_t size, std::function<void()> done) {
    while (!waiting_.empty() && waiting_.begin()->first.first < epoch.value) {
      waiting_.erase(waiting_.begin());
    }
    auto& ranks = waiting_[{epoch.value, step.value}];
    ranks.push_back(std::move(done));
    if (ranks.size() < size) return;
    const auto complete = std::move(ranks);
    waiting_.erase({epoch.value, step.value});
    for (const auto& rank : complete) rank();
  }

 private:
  std::map<std::pair<uint64_t, uint64_t>, std::vector<std::function<void()>>> waiting_;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_COLLECTIVES_H_
