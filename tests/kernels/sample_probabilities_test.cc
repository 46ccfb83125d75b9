// Sample against probabilities by definition (sampling_golden.py).
#include <algorithm>
#include <utility>

#include "kernels/host/philox.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/sample_draw.h"
#include "tests/kernels/sampling_golden.h"

namespace tandem::kernels {
namespace {

class SampleProbabilitiesTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(SampleProbabilitiesTest);

// Random numbers of positions, ascending.
using Numbers = std::vector<std::pair<double, uint64_t>>;

constexpr uint64_t kGoldenSeed = 3;

const Numbers& FirstNumbers() {
  static const Numbers sorted = [] {
    Numbers numbers;
    for (uint64_t position = 0; position < 4'000'000; ++position) {
      numbers.emplace_back(host::UniformDraw(kGoldenSeed, position), position);
    }
    std::ranges::sort(numbers);
    return numbers;
  }();
  return sorted;
}

// How far from a boundary between two ids a draw may be: the probabilities of goldens are rounded.
constexpr double kNear = 1e-6;
// And how far at most, of so many random numbers: so many that each boundary has some.
double FarOf(const Numbers& numbers) { return 20.0 / static_cast<double>(numbers.size()); }

// Calls visit(id, begin, end) with each id's part of [0, 1).
template <typename Visit>
void ForEachPart(const std::vector<double>& probabilities, Visit visit) {
  double begin = 0;
  for (size_t id = 0; id < probabilities.size(); ++id) {
    visit(id, begin, begin + probabilities[id]);
    begin += probabilities[id];
  }
}

// Calls visit(id, position) with the first and the last position of each id's part: so each
// probability is right within 2 FarOf. Those that are smaller follow from their neighbours'.
template <typename Visit>
void ForEachBoundary(const Numbers& numbers, const std::vector<double>& probabilities,
                     Visit visit) {
  const double far = FarOf(numbers);
  ForEachPart(probabilities, [&](size_t id, double begin, double end) {
    if (end - begin <= 2 * far) return;
    const auto first = std::ranges::lower_bound(numbers, std::pair(begin + kNear, uint64_t{0}));
    const auto last = std::ranges::lower_bound(numbers, std::pair(end - kNear, uint64_t{0})) - 1;
    ASSERT_LT(first->first, begin + far) << "id " << id;
    ASSERT_GT(last->first, end - far) << "id " << id;
    visit(id, first->second);
    visit(id, last->second);
  });
}

// The second numbers of the positions at which top_p drops what is drawn first.
Numbers SecondNumbers(const SamplingGolden& golden) {
  Numbers numbers;
  const Numbers& first = FirstNumbers();
  ForEachPart(golden.before_top_p, [&](size_t id, double begin, double end) {
    if (golden.probabilities[id] > 0) return;
    auto at = std::ranges::lower_bound(first, std::pair(begin + kNear, uint64_t{0}));
    for (; at != first.end() && at->first < end - kNear; ++at) {
      numbers.emplace_back(
          host::UniformDraw(kGoldenSeed, at->second, host::RandomStream::kAfterTopP), at->second);
    }
  });
  std::ranges::sort(numbers);
  return numbers;
}

TEST_P(SampleProbabilitiesTest, EverySamplerHasThoseOfItsDefinition) {
  Rig rig(GetParam());
  for (size_t c = 0; c < kSamplingGolden.size(); ++c) {
    SCOPED_TRACE(testing::Message() << "case " << c);
    const SamplingGolden& golden = kSamplingGolden[c];
    std::vector<SamplingRow> rows;
    std::vector<int32_t> expected;
    const auto add = [&](size_t id, uint64_t position) {
      if (golden.probabilities[id] == 0) return;
      rows.push_back(golden.row);
      rows.back().seed = kGoldenSeed;
      rows.back().position = position;
      rows.back().adjustments_end = static_cast<int32_t>(golden.adjustments.size());
      expected.push_back(static_cast<int32_t>(id));
    };
    if (golden.before_top_p.empty()) {
      ForEachBoundary(FirstNumbers(), golden.probabilities, add);
    } else {
      ForEachBoundary(FirstNumbers(), golden.before_top_p, add);
      const Numbers second = SecondNumbers(golden);
      ASSERT_GT(second.size(), 100'000u);
      ForEachBoundary(second, golden.probabilities, add);
    }
    EXPECT_EQ(Draw(rig, kGoldenLogits, static_cast<uint32_t>(kGoldenLogits.size()), rows,
                   golden.adjustments),
              expected);
  }
}

}  // namespace
}  // namespace tandem::kernels
