#include "coordinator/simulation/step_costs.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tandem::coordinator {
namespace {

using std::chrono::microseconds;

StepMeasurements Measured() {
  return {.prefill = {.sizes = {1, 10, 100}, .us = {100, 190, 1000}},
          .decode = {.sizes = {1, 10}, .us = {110, 290}}};
}

StepLoad Decodes(uint32_t rows, uint32_t position = 0) {
  StepLoad load;
  for (uint32_t i = 0; i < rows; ++i) load.AddDecode(position);
  return load;
}

StepLoad Prefill(uint32_t begin, uint32_t tokens) {
  StepLoad load;
  load.AddPrefill(begin, tokens);
  return load;
}

TEST(StepCosts, MeasuredStepsTakeWhatTheyTook) {
  StepMeasurements measured = Measured();
  measured.decode_positions = 20;
  measured.decode_position_ns = 500;
  measured.prefill_position_ns = 20;
  const StepCosts costs(measured);
  EXPECT_EQ(costs.Of(Prefill(0, 1), 1), microseconds(100));
  EXPECT_EQ(costs.Of(Prefill(0, 10), 1), microseconds(190));
  EXPECT_EQ(costs.Of(Prefill(0, 100), 1), microseconds(1000));
  EXPECT_EQ(costs.Of(Decodes(1, 19), 1), microseconds(110));
  EXPECT_EQ(costs.Of(Decodes(10, 19), 10), microseconds(290));
}

TEST(StepCosts, BetweenAndBeyondAreStraightLines) {
  const StepCosts costs(Measured());
  EXPECT_EQ(costs.Of(Prefill(0, 4), 1), microseconds(130));
  EXPECT_EQ(costs.Of(Prefill(0, 55), 1), microseconds(595));
  EXPECT_EQ(costs.Of(Prefill(0, 300), 1), microseconds(2800));
  EXPECT_EQ(costs.Of(Decodes(3), 3), microseconds(150));
  EXPECT_EQ(costs.Of(Decodes(20), 20), microseconds(490));
}

TEST(StepCosts, NothingBecomesFasterBeyondWhatWasMeasured) {
  const StepCosts costs(
      {.prefill = {.sizes = {1, 2}, .us = {100, 90}}, .decode = {.sizes = {3}, .us = {50}}});
  EXPECT_EQ(costs.Of(Prefill(0, 1000), 1), microseconds(90));
  EXPECT_EQ(costs.Of(Decodes(1), 1), microseconds(50));
  EXPECT_EQ(costs.Of(Decodes(9), 9), microseconds(50));
}

TEST(StepCosts, PositionsCostTheirTime) {
  StepMeasurements measured = Measured();
  measured.decode_positions = 1;
  measured.decode_position_ns = 500;
  measured.prefill_position_ns = 20;
  const StepCosts costs(measured);
  // A token at position 1000 sees 1001, 1000 more than those measured.
  EXPECT_EQ(costs.Of(Decodes(1, 1000), 1), microseconds(110 + 500));
  // 100 tokens see 1000 more each.
  EXPECT_EQ(costs.Of(Prefill(1000, 100), 1), microseconds(1000 + 2000));
}

TEST(StepCosts, AMixedStepIsAPromptOfAllItsTokensWithAHeadForEachSample) {
  const StepCosts costs(Measured());
  StepLoad load = Decodes(10);
  load.AddPrefill(0, 90);
  // Ten samples: 290 us instead of 190.
  EXPECT_EQ(costs.Of(load, 10), microseconds(1000 + 100));
  EXPECT_EQ(costs.Of(load, 1), microseconds(1000));
}

TEST(StepCosts, NoStepIsFree) {
  const StepCosts costs(
      {.prefill = {.sizes = {1}, .us = {0.25}}, .decode = {.sizes = {1}, .us = {0.25}}});
  EXPECT_EQ(costs.Of(Decodes(1), 1), microseconds(1));
  EXPECT_EQ(costs.Of(Prefill(0, 5), 1), microseconds(1));
}

TEST(StepCosts, PositionsThatCostMoreThanTheirStepLeaveNothingForTheRest) {
  StepMeasurements measured = Measured();
  measured.decode_positions = 100;
  measured.decode_position_ns = 10'000;
  EXPECT_EQ(StepCosts(measured).Of(Decodes(1, 49), 1), microseconds(500));
}

TEST(StepCosts, NoTimeIsTooLongToCount) {
  StepMeasurements measured = Measured();
  measured.prefill_position_ns = 1e12;
  EXPECT_EQ(StepCosts(measured).Of(Prefill(1 << 30, 1 << 20), 1), std::chrono::seconds(1'000'000));
}

TEST(StepMeasurements, SaysWhatIsWrong) {
  const auto error = [](auto change) {
    StepMeasurements measured = Measured();
    change(measured);
    return std::string(measured.Validate().message());
  };
  EXPECT_EQ(error([](auto&) {}), "");
  EXPECT_EQ(error([](auto& m) { m.prefill.us.pop_back(); }),
            "prefill-us: needed a time for each size and one at least, found 2 times and 3 sizes");
  EXPECT_EQ(error([](auto& m) { m.decode = {}; }),
            "decode-us: needed a time for each size and one at least, found 0 times and 0 sizes");
  EXPECT_EQ(error([](auto& m) { m.decode.sizes[1] = 1; }),
            "decode-us: needed ascending sizes from 1 on, found 1 after 1");
  EXPECT_EQ(error([](auto& m) { m.decode.sizes[0] = 0; }),
            "decode-us: needed ascending sizes from 1 on, found 0 first");
  EXPECT_EQ(error([](auto& m) { m.prefill.us[2] = 0; }),
            "prefill-us: needed times above 0, found 0 of size 100");
  EXPECT_EQ(error([](auto& m) { m.prefill.us[2] = std::numeric_limits<double>::quiet_NaN(); }),
            "prefill-us: needed times above 0, found nan of size 100");
  EXPECT_EQ(error([](auto& m) { m.decode_position_ns = -1; }),
            "decode-position-ns: needed 0 or more, found -1");
}

}  // namespace
}  // namespace tandem::coordinator
