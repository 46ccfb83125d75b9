// Arrival processes of an open loop.
#ifndef TANDEM_TESTS_LOAD_ARRIVALS_H_
#define TANDEM_TESTS_LOAD_ARRIVALS_H_

#include <cstddef>
#include <random>
#include <vector>

namespace tandem::load {

// The send times of `count` requests, in seconds and rising: gaps are gamma-distributed with shape
// `burstiness` and mean 1 / `rate`. Shape 1 is a Poisson process, an infinite shape has equal gaps;
// an infinite rate sends all at 0. The times are scaled so that the last is at count / rate: each
// seed offers the same mean rate.
std::vector<double> ArrivalTimes(size_t count, double rate, double burstiness,
                                 std::mt19937_64& random);

// The same with each tenth of the requests in its tenth of the time, for runs that are compared
// with each other: at one rate the load of every part is the same.
std::vector<double> EvenArrivalTimes(size_t count, double rate, double burstiness,
                                     std::mt19937_64& random);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_ARRIVALS_H_
