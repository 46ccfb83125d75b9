// The ring itself, and peers that write nonsense into it.
#include "common/transport/shm_ring.h"

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tandem::transport {
namespace {

constexpr uint64_t kCapacity = 256;

// Exactly sized heap memory, so that an address checker sees every access outside it.
struct Memory {
  std::unique_ptr<ShmRingControl> control = std::make_unique<ShmRingControl>();
  std::unique_ptr<std::byte[]> data = std::make_unique<std::byte[]>(kCapacity);
  ShmRing Ring() { return ShmRing(control.get(), data.get(), kCapacity); }
};

TEST(ShmRingTest, FillsToTheLastByte) {
  Memory memory;
  ShmRing writer = memory.Ring(), reader = memory.Ring();
  EXPECT_EQ(writer.max_frame_bytes(), kCapacity - 8);
  for (int round = 0; round < 20; ++round) {
    // Two records of (8 + 120) bytes, after which not even an empty frame fits.
    const Frame frame(117, static_cast<uint8_t>(round));
    EXPECT_EQ(writer.TryWrite(frame), RingResult::kDone);
    EXPECT_EQ(writer.TryWrite(frame), RingResult::kDone);
    EXPECT_EQ(writer.TryWrite({}), RingResult::kWait);
    Frame read;
    EXPECT_EQ(reader.TryRead(read), RingResult::kDone);
    EXPECT_EQ(read, frame);
    EXPECT_EQ(reader.TryRead(read), RingResult::kDone);
    EXPECT_EQ(reader.TryRead(read), RingResult::kWait);
    // Moves the start, so that later rounds wrap inside a frame.
    EXPECT_EQ(writer.TryWrite(Frame(33)), RingResult::kDone);
    EXPECT_EQ(reader.TryRead(read), RingResult::kDone);
    EXPECT_EQ(read, Frame(33));
  }
}

TEST(ShmRingTest, ABrokenHeadIsFound) {
  for (uint64_t head : {uint64_t{4}, uint64_t{kCapacity + 8}, ~uint64_t{0}, uint64_t{1} << 63}) {
    Memory memory;
    ShmRing reader = memory.Ring();
    memory.control->head = head;
    Frame frame;
    EXPECT_EQ(reader.TryRead(frame), RingResult::kBroken) << head;
  }
}

TEST(ShmRingTest, ABrokenLengthIsFound) {
  for (uint64_t length : {uint64_t{9}, uint64_t{kCapacity}, uint64_t{1} << 40, ~uint64_t{0}}) {
    Memory memory;
    ShmRing writer = memory.Ring(), reader = memory.Ring();
    ASSERT_EQ(writer.TryWrite(Frame(8)), RingResult::kDone);
    std::memcpy(memory.data.get(), &length, sizeof(length));
    Frame frame;
    EXPECT_EQ(reader.TryRead(frame), RingResult::kBroken) << length;
  }
}

TEST(ShmRingTest, ABrokenTailIsFound) {
  for (uint64_t tail : {uint64_t{8}, ~uint64_t{0}, uint64_t{1} << 63}) {
    Memory memory;
    ShmRing writer = memory.Ring();
    memory.control->tail = tail;
    const RingResult result = writer.TryWrite(Frame(8));
    EXPECT_TRUE(result == RingResult::kBroken || tail == ~uint64_t{0}) << tail;
  }
}

// A peer that scribbles over everything: any answer will do, an access outside the memory will not.
TEST(ShmRingTest, SurvivesNoise) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20000; ++round) {
    Memory memory;
    ShmRing writer = memory.Ring(), reader = memory.Ring();
    Frame frame;
    for (int i = 0; i < 6; ++i) {
      (void)writer.TryWrite(Frame(random() % (kCapacity - 8)));
      (void)reader.TryRead(frame);
      switch (random() % 4) {
        case 0:
          memory.control->head = random() % (2 * kCapacity);
          break;
        case 1:
          memory.control->tail = random() % (2 * kCapacity);
          break;
        case 2:
          memory.control->head = memory.control->head + 8 * (random() % 32);
          break;
        default:
          for (uint64_t at = 0; at < kCapacity; at += 8) {
            const uint64_t noise = random() % 400;
            std::memcpy(memory.data.get() + at, &noise, sizeof(noise));
          }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::transport
