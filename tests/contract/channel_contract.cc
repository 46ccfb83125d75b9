#include "tests/contract/channel_contract.h"

#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/step_guard.h"

namespace tandem::transport {
namespace {

using absl::StatusCode;

// A wait that only a broken channel runs into.
Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }
Deadline Short() { return Deadline::After(std::chrono::milliseconds(5)); }
Deadline Past() { return Deadline::At(TimePoint()); }

// Frame number `seed`: its length and every byte follow from that.
Frame MakeFrame(uint64_t seed, size_t bytes) {
  Frame frame(bytes);
  for (size_t i = 0; i < bytes; ++i) frame[i] = static_cast<uint8_t>((seed * 31 + i) * 7 + i / 251);
  return frame;
}

bool Mentions(const absl::Status& status, const std::string& part) {
  return status.message().find(part) != absl::string_view::npos;
}

// Sends until there is no room; how many went.
size_t Fill(Channel& channel) {
  for (size_t sent = 0;; ++sent) {
    const absl::Status status = channel.Send(MakeFrame(sent, 1000), Past());
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    return sent;
  }
}

TEST_P(ChannelContract, FramesArriveInOrderInBothDirections) {
  ChannelPair pair = Make();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(pair.a->Send(MakeFrame(i, 10 + i), Long()), absl::OkStatus());
    ASSERT_EQ(pair.b->Send(MakeFrame(100 + i, 20 + i), Long()), absl::OkStatus());
  }
  for (int i = 0; i < 3; ++i) {
    const auto there = pair.b->Receive(Long());
    const auto back = pair.a->Receive(Long());
    ASSERT_TRUE(there.ok() && back.ok());
    EXPECT_EQ(*there, MakeFrame(i, 10 + i));
    EXPECT_EQ(*back, MakeFrame(100 + i, 20 + i));
  }
}

TEST_P(ChannelContract, CarriesEverySizeUpToTheLargest) {
  ChannelPair pair = Make();
  const size_t most = pair.a->max_frame_bytes();
  EXPECT_EQ(pair.b->max_frame_bytes(), most);
  EXPECT_GE(most, size_t{16 << 10} - 64);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{4095},
                       size_t{4096}, most / 2, most - 1, most, size_t{0}, most}) {
    const Frame frame = MakeFrame(bytes, bytes);
    ASSERT_EQ(pair.a->Send(frame, Long()), absl::OkStatus()) << bytes;
    const auto received = pair.b->Receive(Long());
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(*received, frame) << bytes;
  }
}

TEST_P(ChannelContract, RefusesFramesThatAreTooBigAndContinues) {
  ChannelPair pair = Make();
  const size_t most = pair.a->max_frame_bytes();
  const absl::Status status = pair.a->Send(Frame(most + 1), Long());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Mentions(status, absl::StrCat(most))) << status;
  EXPECT_TRUE(Mentions(status, absl::StrCat(most + 1))) << status;
  EXPECT_EQ(pair.a->Send(MakeFrame(1, 5), Long()), absl::OkStatus());
  EXPECT_EQ(pair.b->Receive(Long()).value(), MakeFrame(1, 5));
}

TEST_P(ChannelContract, KeepsOrderThroughManyFillings) {
  ChannelPair pair = Make(4096);
  std::mt19937 random(3);
  size_t sent = 0, received = 0;
  std::vector<size_t> sizes;
  while (received < 3000) {
    if (sizes.size() == sent) sizes.push_back(random() % 1500);
    if (random() % 3 != 0 && pair.a->Send(MakeFrame(sent, sizes[sent]), Past()).ok()) {
      ++sent;
      continue;
    }
    const auto frame = pair.b->Receive(Past());
    if (received == sent) {
      EXPECT_EQ(frame.status().code(), StatusCode::kDeadlineExceeded);
      continue;
    }
    ASSERT_TRUE(frame.ok()) << frame.status();
    ASSERT_EQ(*frame, MakeFrame(received, sizes[received]));
    ++received;
  }
}

TEST_P(ChannelContract, ReceiveEndsAtTheDeadline) {
  ChannelPair pair = Make();
  EXPECT_EQ(pair.b->Receive(Short()).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(pair.b->Receive(Past()).status().code(), StatusCode::kDeadlineExceeded);
  ASSERT_EQ(pair.a->Send(MakeFrame(1, 9), Long()), absl::OkStatus());
  // A queued frame is returned even if the deadline has passed.
  EXPECT_EQ(pair.b->Receive(Past()).value(), MakeFrame(1, 9));
}

TEST_P(ChannelContract, SendEndsAtTheDeadlineWhenThereIsNoRoom) {
  ChannelPair pair = Make(4096);
  const size_t sent = Fill(*pair.a);
  EXPECT_GT(sent, 0u);
  EXPECT_EQ(pair.a->Send(MakeFrame(0, 1000), Short()).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(pair.b->Receive(Long()).value(), MakeFrame(0, 1000));
  EXPECT_EQ(pair.a->Send(MakeFrame(sent, 1000), Past()), absl::OkStatus());
  for (size_t i = 1; i <= sent; ++i) ASSERT_EQ(pair.b->Receive(Past()).value(), MakeFrame(i, 1000));
  EXPECT_EQ(pair.b->Receive(Past()).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_P(ChannelContract, WhatWasSentIsReceivedAfterTheClose) {
  for (bool near_end : {true, false}) {
    ChannelPair pair = Make();
    ASSERT_EQ(pair.a->Send(MakeFrame(1, 10), Long()), absl::OkStatus());
    ASSERT_EQ(pair.a->Send(MakeFrame(2, 10), Long()), absl::OkStatus());
    (near_end ? pair.a : pair.b)->Close("done for today");
    (near_end ? pair.b : pair.a)->Close("a later reason");
    EXPECT_EQ(pair.b->Receive(Long()).value(), MakeFrame(1, 10));
    EXPECT_EQ(pair.b->Receive(Long()).value(), MakeFrame(2, 10));
    for (Channel* end : {pair.a.get(), pair.b.get()}) {
      const absl::Status received = end->Receive(Long()).status();
      EXPECT_EQ(received.code(), StatusCode::kUnavailable);
      EXPECT_TRUE(Mentions(received, "done for today")) << received;
      const absl::Status sent = end->Send(MakeFrame(3, 10), Long());
      EXPECT_EQ(sent.code(), StatusCode::kUnavailable);
      EXPECT_TRUE(Mentions(sent, "done for today")) << sent;
    }
  }
}

TEST_P(ChannelContract, CloseFromEitherEndWakesAReceiver) {
  for (int round = 0; round < 40; ++round) {
    ChannelPair pair = Make();
    std::thread receiver([&] {
      const absl::Status status = pair.b->Receive(Long()).status();
      EXPECT_EQ(status.code(), StatusCode::kUnavailable);
      EXPECT_TRUE(Mentions(status, "over")) << status;
    });
    for (int i = 0; i < round * 20; ++i) std::this_thread::yield();
    (round % 2 == 0 ? pair.a : pair.b)->Close("over");
    receiver.join();
  }
}

TEST_P(ChannelContract, CloseFromEitherEndWakesASender) {
  for (int round = 0; round < 40; ++round) {
    ChannelPair pair = Make(4096);
    Fill(*pair.a);
    std::thread sender([&] {
      const absl::Status status = pair.a->Send(MakeFrame(0, 1000), Long());
      EXPECT_EQ(status.code(), StatusCode::kUnavailable);
      EXPECT_TRUE(Mentions(status, "over")) << status;
    });
    for (int i = 0; i < round * 20; ++i) std::this_thread::yield();
    (round % 2 == 0 ? pair.a : pair.b)->Close("over");
    sender.join();
  }
}

TEST_P(ChannelContract, AnEndThatIsDestroyedCloses) {
  ChannelPair pair = Make();
  pair.a.reset();
  EXPECT_EQ(pair.b->Receive(Long()).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(pair.b->Send(MakeFrame(0, 1), Long()).code(), StatusCode::kUnavailable);
}

TEST_P(ChannelContract, WaitsCountAsBlockingCalls) {
  ChannelPair pair = Make();
  {
    StepGuard guard;
    EXPECT_EQ(pair.a->Send(MakeFrame(1, 1), Long()), absl::OkStatus());
    EXPECT_TRUE(Mentions(guard.Check(), "Channel::Send"));
  }
  StepGuard guard;
  EXPECT_TRUE(pair.b->Receive(Long()).ok());
  EXPECT_TRUE(Mentions(guard.Check(), "Channel::Receive"));
}

// Both ends send and receive at once; every byte is checked.
TEST_P(ChannelContract, SoakInBothDirectionsAtOnce) {
  ChannelPair pair = Make();
  constexpr int kFrames = 4000;
  const size_t most = pair.a->max_frame_bytes();
  const auto size_of = [&](int direction, int i) {
    std::minstd_rand random(direction * kFrames + i + 1);
    random.discard(3);
    const size_t limit = random() % 8 == 0 ? most : 300;
    return static_cast<size_t>(random() % (limit + 1));
  };
  const auto send = [&](Channel& channel, int direction) {
    for (int i = 0; i < kFrames; ++i) {
      const absl::Status status = channel.Send(MakeFrame(i, size_of(direction, i)), Long());
      if (!status.ok()) return ADD_FAILURE() << status;
    }
  };
  const auto receive = [&](Channel& channel, int direction) {
    for (int i = 0; i < kFrames; ++i) {
      const auto frame = channel.Receive(Long());
      if (!frame.ok()) return ADD_FAILURE() << frame.status();
      if (*frame != MakeFrame(i, size_of(direction, i))) return ADD_FAILURE() << "frame " << i;
    }
  };
  std::thread threads[] = {
      std::thread([&] { send(*pair.a, 0); }), std::thread([&] { receive(*pair.b, 0); }),
      std::thread([&] { send(*pair.b, 1); }), std::thread([&] { receive(*pair.a, 1); })};
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

}  // namespace tandem::transport
