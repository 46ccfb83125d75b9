// Random: the one source of chance of a run. Equal on every machine, unlike the distributions of
// <random>.
#ifndef TANDEM_TESTS_SIM_RANDOM_H_
#define TANDEM_TESTS_SIM_RANDOM_H_

#include <cstdint>
#include <initializer_list>
#include <random>

#include "common/base/clock.h"

namespace tandem::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  uint64_t Next() { return bits_(); }
  // In [0, bound).
  uint64_t Below(uint64_t bound) { return bits_() % bound; }
  // In [least, most].
  uint64_t Between(uint64_t least, uint64_t most) { return least + Below(most - least + 1); }
  bool Chance(double probability) {
    return static_cast<double>(bits_() >> 11) * 0x1p-53 < probability;
  }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Below(values.size())];
  }
  // Evenly between two times.
  Duration Time(Duration least, Duration most) {
    return least + Duration(Below(static_cast<uint64_t>((most - least).count()) + 1));
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_RANDOM_H_
