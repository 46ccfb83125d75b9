#include "coordinator/observe/measured_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/coordinator/api/fake_engine.h"

namespace tandem::coordinator {
namespace {

using std::chrono::milliseconds;

// Takes `stops_after` updates, and of the last its first token alone, then ends the request.
class CountingStream : public TokenStream {
 public:
  explicit CountingStream(int stops_after = 1000) : left_(stops_after) {}
  Taken OnUpdate(StreamUpdate update) override {
    if (--left_ > 0) return {};
    const size_t num_tokens = update.tokens.size();
    return {.stopped = true, .num_dropped = num_tokens > 0 ? uint32_t(num_tokens) - 1 : 0};
  }
  void Flush() override {}

 private:
  int left_;
};

class MeasuredEngineTest : public testing::Test {
 protected:
  // The stream that the engine has of a request.
  std::shared_ptr<TokenStream> Add(const std::string& id, int stops_after = 1000) {
    Request request;
    request.id = id;
    request.prompt = {1};
    request.stream = std::make_shared<CountingStream>(stops_after);
    EXPECT_TRUE(measured_.Add(std::move(request)).ok());
    return engine_.WaitForRequests(++num_added_).back().stream;
  }
  int64_t Ended(RequestMetrics::End end) const { return metrics_.ended[end]; }
  // The lengths recorded, as (sum, number).
  static std::pair<double, uint64_t> Of(const Histogram& histogram) {
    return {histogram.View().sum_s, histogram.View().total()};
  }

  SimulatedClock clock_;
  FakeEngine engine_;
  RequestMetrics metrics_;
  MeasuredEngine measured_{engine_, metrics_, clock_};
  size_t num_added_ = 0;
};

using Lengths = std::pair<double, uint64_t>;

TEST_F(MeasuredEngineTest, MeasuresARequestFromItsArrivalToItsEnd) {
  clock_.Advance(std::chrono::hours(1));
  const auto stream = Add("a");
  clock_.Advance(milliseconds(64));
  const TimePoint scheduled = clock_.Now();
  clock_.Advance(milliseconds(128));
  Send(*stream, {.tokens = {1}, .usage = {.prompt_tokens = 7}, .scheduled_at = scheduled});
  clock_.Advance(milliseconds(512));
  Send(*stream, {.tokens = {2, 3}, .usage = {.prompt_tokens = 7}, .scheduled_at = scheduled});
  clock_.Advance(milliseconds(256));
  Send(*stream, {.tokens = {4},
                 .reason = FinishReason::kLength,
                 .usage = {.prompt_tokens = 7},
                 .scheduled_at = scheduled});
  EXPECT_EQ(Of(metrics_.queue_time), Lengths(0.064, 1));
  EXPECT_EQ(Of(metrics_.prefill_time), Lengths(0.128, 1));
  EXPECT_EQ(Of(metrics_.time_to_first_token), Lengths(0.192, 1));
  EXPECT_EQ(Of(metrics_.inter_token_latency), Lengths(0.768, 3));
  EXPECT_EQ(Of(metrics_.decode_time), Lengths(0.768, 1));
  EXPECT_EQ(Of(metrics_.e2e_latency), Lengths(0.96, 1));
  EXPECT_EQ(metrics_.prompt_tokens, 7);
  EXPECT_EQ(metrics_.generation_tokens, 4);
  EXPECT_EQ(Ended(RequestMetrics::kLength), 1);
}

TEST_F(MeasuredEngineTest, ARequestThatDrawsNothingHasNoFirstToken) {
  const auto stream = Add("scored");
  clock_.Advance(milliseconds(64));
  const TimePoint scheduled = clock_.Now();
  clock_.Advance(milliseconds(128));
  Send(*stream,
       {.reason = FinishReason::kLength, .usage = {.prompt_tokens = 7}, .scheduled_at = scheduled});
  EXPECT_EQ(metrics_.prompt_tokens, 7);
  EXPECT_EQ(Of(metrics_.queue_time), Lengths(0.064, 1));
  EXPECT_EQ(Of(metrics_.prefill_time), Lengths(0.128, 1));
  EXPECT_EQ(metrics_.e2e_latency.View().total(), 0u) << "that is of answers";
  EXPECT_EQ(Ended(RequestMetrics::kPrompt), 1);
  EXPECT_EQ(Ended(RequestMetrics::kLength), 0);
  EXPECT_EQ(metrics_.time_to_first_token.View().total(), 0u);
  EXPECT_EQ(metrics_.generation_tokens, 0);
}

TEST_F(MeasuredEngineTest, CountsEachWayToEndOnce) {
  Send(*Add("stop string", 1), {.tokens = {1}});
  const auto late = Add("late tokens", 1);
  Send(*late, {.tokens = {1}});
  Send(*late, {.tokens = {2}, .reason = FinishReason::kLength});
  Send(*Add("stop token"), {.tokens = {1}, .reason = FinishReason::kStop});
  Send(*Add("cancelled"), {.reason = FinishReason::kCancelled});
  Send(*Add("failed"), {.status = absl::UnavailableError("rank 0")});
  EXPECT_EQ(Ended(RequestMetrics::kStop), 3);
  EXPECT_EQ(Ended(RequestMetrics::kLength), 0);
  EXPECT_EQ(Ended(RequestMetrics::kAbort), 1);
  EXPECT_EQ(Ended(RequestMetrics::kError), 1);
  EXPECT_EQ(metrics_.generation_tokens, 3);
  EXPECT_EQ(metrics_.e2e_latency.View().total(), 3u) << "of those that were answered";
}

TEST_F(MeasuredEngineTest, AStopStringCountsAheadOfAnotherEndAndOfTokensBehindIt) {
  Send(*Add("guessed", 1), {.tokens = {1, 2, 3}, .reason = FinishReason::kLength});
  EXPECT_EQ(Ended(RequestMetrics::kStop), 1);
  EXPECT_EQ(Ended(RequestMetrics::kLength), 0);
  EXPECT_EQ(metrics_.generation_tokens, 1);
}

TEST_F(MeasuredEngineTest, ARefusedRequestIsNotMeasured) {
  engine_.Refuse(absl::ResourceExhaustedError("full"));
  Request request;
  request.stream = std::make_shared<CountingStream>();
  EXPECT_EQ(measured_.Add(std::move(request)).status().message(), "full");
  for (const auto& ended : metrics_.ended) EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace tandem::coordinator
