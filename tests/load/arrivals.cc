#include "tests/load/arrivals.h"

#include <cmath>

namespace tandem::load {

std::vector<double> ArrivalTimes(size_t count, double rate, double burstiness,
                                 std::mt19937_64& random) {
  std::vector<double> times(count, 0);
  if (std::isinf(rate) || count == 0) return times;
  double now = 0;
  if (std::isinf(burstiness)) {
    for (double& time : times) time = now += 1 / rate;
    return times;
  }
  std::gamma_distribution<double> gap(burstiness, 1 / (rate * burstiness));
  for (double& time : times) time = now += gap(random);
  const double scale = now > 0 ? static_cast<double>(count) / rate / now : 0;
  for (double& time : times) time *= scale;
  return times;
}

std::vector<double> EvenArrivalTimes(size_t count, double rate, double burstiness,
                                     std::mt19937_64& random) {
  constexpr size_t kParts = 10;
  std::vector<double> times;
  for (size_t i = 1; i <= kParts; ++i) {
    const double before_s = static_cast<double>(times.size()) / rate;
    for (const double time :
         ArrivalTimes(count * i / kParts - times.size(), rate, burstiness, random)) {
      times.push_back(before_s + time);
    }
  }
  return times;
}

}  // namespace tandem::load
