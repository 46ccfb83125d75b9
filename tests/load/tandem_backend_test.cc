// TandemBackend and whole runs of it against the stub, over real gRPC.
#include "tests/load/tandem_backend.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>

#include "client/channel.h"
#include "tests/load/load_run.h"
#include "tests/load/stats_poller.h"
#include "tests/load/stub_service.h"

namespace tandem::load {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

class TandemBackendTest : public testing::Test {
 protected:
  void Start(const StubBehaviour& behaviour,
             const RequestSettings& settings = {.timeout = kPatience}) {
    auto server = StubServer::Start("127.0.0.1:0", behaviour);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    auto backend = TandemBackend::Connect({.server = server_->address()}, settings);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
  }

  RunRecord Run(const std::vector<LoadRequest>& requests, const RunSettings& settings = {}) {
    return LoadRun(*backend_, requests, settings).Run();
  }

  std::unique_ptr<StubServer> server_;
  std::unique_ptr<Backend> backend_;
};

std::vector<LoadRequest> Requests(size_t count, uint32_t output_tokens) {
  std::vector<LoadRequest> requests(count);
  for (LoadRequest& request : requests) {
    request.token_ids = {1, 2, 3};
    request.output_tokens = output_tokens;
  }
  return requests;
}

TEST_F(TandemBackendTest, StreamsEveryToken) {
  Start({.tokens_per_message = 2});
  auto requests = Requests(5, 7);
  requests[4].token_ids.clear();
  requests[4].text = "four";
  const RunRecord record = Run(requests);
  ASSERT_EQ(record.samples.size(), 5u);
  for (const Sample& sample : record.samples) {
    EXPECT_TRUE(sample.completed()) << sample.error;
    EXPECT_EQ(sample.arrivals.size(), 4u);
    EXPECT_EQ(sample.output_tokens, 7u);
  }
  EXPECT_EQ(record.samples[0].prompt_tokens, 3u);
  EXPECT_EQ(record.samples[4].prompt_tokens, 4u);
}

TEST_F(TandemBackendTest, RequestsAreAsTheSettingsSay) {
  v1::GenerateRequest sent;
  Start({.on_request = [&](const v1::GenerateRequest& request) { sent = request; }},
        {.ignore_eos = true,
         .temperature = 0.5f,
         .priority = -7,
         .adapter = "a",
         .timeout = kPatience});
  Run(Requests(1, 3));
  EXPECT_TRUE(sent.sampling().ignore_eos());
  EXPECT_EQ(sent.sampling().temperature(), 0.5f);
  EXPECT_EQ(sent.priority(), -7);
  EXPECT_EQ(sent.adapter(), "a");
  Start({.on_request = [&](const v1::GenerateRequest& request) { sent = request; }});
  Run(Requests(1, 3));
  EXPECT_FALSE(sent.has_priority());
}

TEST_F(TandemBackendTest, KnowsTheModelAndItsStatistics) {
  Start({});
  const auto model = backend_->Model(Deadline::After(kPatience));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name, "stub");
  EXPECT_EQ(model->vocab_size, 1000u);
  EXPECT_EQ(model->special_ids, std::vector<int32_t>{0});
  const auto stats = backend_->Stats(Deadline::After(kPatience));
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->waiting, 7);
  EXPECT_EQ(stats->kv_used, 0.75);
  const auto count = backend_->CountTokens("hello");
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 5u);
}

TEST_F(TandemBackendTest, CancelsAndReadsSlowly) {
  Start({}, {.timeout = kPatience, .slow_read_delay = std::chrono::milliseconds(1)});
  auto requests = Requests(3, 50);
  requests[0].cancel_after_messages = 3;
  requests[1].slow_reader = true;
  const RunRecord record = Run(requests);
  EXPECT_EQ(record.samples[0].outcome, Outcome::kCancelled);
  EXPECT_EQ(record.samples[0].arrivals.size(), 3u);
  EXPECT_TRUE(record.samples[1].completed());
  EXPECT_EQ(record.samples[1].output_tokens, 50u);
  // The reader's delay is between its messages, whatever the server does.
  EXPECT_GE(record.samples[1].e2el_s(), 0.049);
  EXPECT_TRUE(record.samples[2].completed());
}

TEST_F(TandemBackendTest, RefusedRequestsFail) {
  Start({.refuse_every = 2});
  const RunRecord record = Run(Requests(4, 2), {.max_concurrency = 1});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(record.samples[i].outcome, i % 2 == 0 ? Outcome::kCompleted : Outcome::kFailed);
  }
  EXPECT_EQ(record.samples[1].error, "the queue is full");
}

TEST_F(TandemBackendTest, ASlowServerMeetsTheTimeout) {
  Start({.token_interval = std::chrono::hours(1)}, {.timeout = std::chrono::milliseconds(100)});
  const RunRecord record = Run(Requests(1, 2));
  EXPECT_EQ(record.samples[0].outcome, Outcome::kFailed);
  EXPECT_EQ(record.end, RunEnd::kDone) << "the server still answers";
  server_->Shutdown();
}

TEST_F(TandemBackendTest, AServerThatGoesAwayEndsTheRun) {
  Start({});
  server_->Shutdown();
  const RunRecord record = Run(Requests(6, 2), {.max_concurrency = 2});
  EXPECT_EQ(record.end, RunEnd::kServerLost);
  EXPECT_GT(record.not_sent, 0u);
}

TEST_F(TandemBackendTest, ThePollerLooksAtOnce) {
  Start({});
  StatsPoller poller(*backend_, Clock::System().Now(), std::chrono::milliseconds(1));
  RunRecord record = Run(Requests(50, 50));
  record.stats = poller.Finish();
  ASSERT_FALSE(record.stats.empty());
  EXPECT_EQ(record.stats[0].waiting, 7);
  EXPECT_GE(record.stats.back().at_s, record.stats.front().at_s);
}

TEST(TandemBackendAddressTest, AllAddressesAreLoaded) {
  std::atomic<int> first_requests{0}, second_requests{0};
  const auto first = StubServer::Start(
      "127.0.0.1:0", {.on_request = [&](const v1::GenerateRequest&) { ++first_requests; }});
  const auto second = StubServer::Start(
      "127.0.0.1:0", {.on_request = [&](const v1::GenerateRequest&) { ++second_requests; }});
  ASSERT_TRUE(first.ok() && second.ok());
  // As a name resolves that has both.
  const client::Connection both{
      .server = "ipv4:" + (*first)->address() + "," + (*second)->address(), .all_addresses = true};
  const auto channel = client::MakeChannel(both);
  ASSERT_TRUE(channel.ok()) << channel.status();
  const auto stub = v1::Generation::NewStub(*channel);
  // The second connection may be ready later than the first.
  const Deadline deadline = Deadline::After(kPatience);
  while ((first_requests == 0 || second_requests == 0) && !deadline.Passed()) {
    grpc::ClientContext context;
    v1::GenerateRequest request;
    request.mutable_sampling()->set_max_tokens(1);
    const auto reader = stub->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
    }
    ASSERT_TRUE(reader->Finish().ok());
  }
  EXPECT_GT(first_requests, 0);
  EXPECT_GT(second_requests, 0);
}

TEST(TandemBackendAddressTest, MustBeAHostAndAPort) {
  EXPECT_TRUE(absl::IsInvalidArgument(TandemBackend::Connect({.server = "nowhere"}, {}).status()));
}

}  // namespace
}  // namespace tandem::load
