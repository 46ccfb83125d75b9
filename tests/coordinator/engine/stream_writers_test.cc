#include "coordinator/engine/stream_writers.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace tandem::coordinator {
namespace {

// What happened, in order, by handle.
class Events {
 public:
  void Add(RequestHandle handle, const std::string& event) {
    MutexLock lock(mutex_);
    events_[handle] += event + " ";
  }
  std::string Of(RequestHandle handle) {
    MutexLock lock(mutex_);
    return events_[handle];
  }

 private:
  Mutex mutex_;
  std::map<uint64_t, std::string> events_ TANDEM_GUARDED_BY(mutex_);
};

// Stops at the token 9.
class EventStream : public TokenStream {
 public:
  EventStream(RequestHandle handle, Events& events) : handle_(handle), events_(events) {}

  Taken OnUpdate(StreamUpdate update) override {
    Taken taken;
    for (TokenId token : update.tokens) {
      events_.Add(handle_, std::to_string(token));
      taken.stopped |= token == 9;
    }
    return taken;
  }
  void Flush() override { events_.Add(handle_, "flush"); }

 private:
  const RequestHandle handle_;
  Events& events_;
};

class StreamWritersTest : public testing::Test {
 protected:
  // Updates of one step: an handle each.
  void Deliver(const std::vector<std::pair<uint64_t, StreamUpdate>>& step) {
    std::vector<Delivery> deliveries;
    for (const auto& [handle, update] : step) {
      auto& stream = streams_[handle];
      if (stream == nullptr) stream = std::make_shared<EventStream>(handle, events_);
      deliveries.push_back({.handle = handle, .stream = stream, .update = update});
    }
    writers_.Deliver(std::move(deliveries));
  }

  Events events_;
  std::map<uint64_t, std::shared_ptr<EventStream>> streams_;
  StreamWriters writers_{3, [this](RequestHandle handle, bool stopped) {
                           events_.Add(handle, stopped ? "stopped" : "over");
                         }};
};

TEST_F(StreamWritersTest, EachRequestsUpdatesStayInOrderAndAllArrive) {
  constexpr uint64_t kRequests = 7;
  std::string expected;
  for (TokenId token = 100; token < 200; ++token) {
    std::vector<std::pair<uint64_t, StreamUpdate>> step;
    for (RequestHandle handle = 1; handle <= kRequests; ++handle) {
      step.push_back({handle, {.tokens = {token, token + 1}}});
    }
    Deliver(step);
    expected += std::to_string(token) + " " + std::to_string(token + 1) + " flush ";
  }
  writers_.Close();
  for (RequestHandle handle = 1; handle <= kRequests; ++handle) {
    EXPECT_EQ(events_.Of(handle), expected);
  }
}

TEST_F(StreamWritersTest, TheEndIsReportedBeforeItIsSent) {
  Deliver({{1, {.tokens = {1}, .reason = FinishReason::kLength}},
           {2, {.status = absl::UnavailableError("rank 1 is lost")}},
           {3, {.tokens = {9}}},
           {4, {.tokens = {9}, .reason = FinishReason::kLength}}});
  writers_.Close();
  writers_.Close();
  EXPECT_EQ(events_.Of(1), "1 over flush ");
  EXPECT_EQ(events_.Of(2), "over flush ");
  EXPECT_EQ(events_.Of(3), "9 stopped flush ");
  EXPECT_EQ(events_.Of(4), "9 over flush ");
}

}  // namespace
}  // namespace tandem::coordinator
