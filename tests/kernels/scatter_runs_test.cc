// ScatterRuns: what runs name changes, and nothing else.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class ScatterRunsTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(ScatterRunsTest);

std::vector<int32_t> Scatter(Rig& rig, const std::vector<ScatterRun>& runs,
                             const std::vector<int32_t>& values, std::vector<int32_t> out,
                             size_t misaligned_by) {
  const ScatterRunsParams params{rig.Put(runs),
                                 static_cast<uint32_t>(runs.size()),
                                 rig.Put(values, misaligned_by),
                                 static_cast<uint32_t>(values.size()),
                                 rig.Put(out, misaligned_by),
                                 out.size()};
  rig.Run([&](Backend& b) { b.Encode(params); });
  return rig.Get(params.out, out.size());
}

TEST_P(ScatterRunsTest, RunsOfAllLengths) {
  for (const size_t misaligned_by : {0, 1}) {
    Rig rig(GetParam());
    Random random(1);
    std::vector<ScatterRun> runs;
    uint32_t num_values = 0, to = 0;
    for (const uint32_t count : {1u, 0u, 3u, 127u, 128u, 129u, 1000u, 1u}) {
      to += static_cast<uint32_t>(random.Int(0, 3));
      runs.push_back({.to = to, .from = num_values, .count = count});
      num_values += count;
      to += count;
    }
    std::shuffle(runs.begin(), runs.end(), random.engine());
    std::vector<int32_t> values(num_values), before(to + 5);
    std::iota(values.begin(), values.end(), 1'000'000);
    std::iota(before.begin(), before.end(), -7);
    std::vector<int32_t> expected = before;
    for (const ScatterRun& run : runs) {
      for (uint32_t i = 0; i < run.count; ++i) expected[run.to + i] = values[run.from + i];
    }
    EXPECT_EQ(Scatter(rig, runs, values, before, misaligned_by), expected);
  }
}

TEST_P(ScatterRunsTest, ValuesMayServeSeveralRunsOrNone) {
  Rig rig(GetParam());
  EXPECT_EQ(Scatter(rig, {{4, 1, 2}, {0, 1, 2}}, {10, 11, 12, 13}, {0, 1, 2, 3, 4, 5, 6}, 0),
            (std::vector<int32_t>{11, 12, 2, 3, 11, 12, 6}));
}

TEST_P(ScatterRunsTest, NoRunsChangeNothing) {
  Rig rig(GetParam());
  EXPECT_EQ(Scatter(rig, {}, {}, {1, 2}, 0), (std::vector<int32_t>{1, 2}));
}

}  // namespace
}  // namespace tandem::kernels
