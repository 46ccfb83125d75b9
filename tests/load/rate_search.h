// RateSearch: the request rates of a sweep: doubled until the server does not keep up, then closing
// in on the highest rate that it keeps up with.
#ifndef TANDEM_TESTS_LOAD_RATE_SEARCH_H_
#define TANDEM_TESTS_LOAD_RATE_SEARCH_H_

#include <optional>

namespace tandem::load {

class RateSearch {
 public:
  // The search is over when the bounds are this close, or after this many runs.
  static constexpr double kPrecision = 1.1;
  static constexpr int kMaxRuns = 14;

  explicit RateSearch(double first) : next_(first) {}

  // The rate of the next run; nothing when the search is over.
  std::optional<double> Next() const;
  // Whether the server kept up with Next()'s rate.
  void Add(bool kept_up);

  // The highest rate that the server kept up with, and the lowest at which it did not.
  std::optional<double> kept_up() const { return kept_up_; }
  std::optional<double> saturated() const { return saturated_; }

 private:
  double next_;
  int runs_ = 0;
  std::optional<double> kept_up_;
  std::optional<double> saturated_;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_RATE_SEARCH_H_
