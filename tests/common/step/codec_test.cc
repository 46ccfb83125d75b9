#include "common/step/codec.h"

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/common/step/example_step.h"

namespace tandem::step {
namespace {

using Frame = std::vector<uint8_t>;

constexpr size_t kHeaderBytes = 12;

Frame EncodeExample() {
  Frame frame;
  Serialize(ExampleStep(), frame);
  return frame;
}

// Where each section of a frame begins (its tag), and where the frame ends.
std::vector<size_t> SectionStarts(const Frame& frame) {
  std::vector<size_t> starts;
  size_t at = kHeaderBytes;
  while (at < frame.size()) {
    starts.push_back(at);
    uint32_t length = 0;
    std::memcpy(&length, &frame[at + 4], 4);
    at += 8 + length;
  }
  starts.push_back(at);
  return starts;
}

void Set32(Frame& frame, size_t at, uint32_t value) { std::memcpy(&frame.at(at), &value, 4); }

void ExpectRefused(const Frame& frame, const std::string& part) {
  const auto step = ParseDescriptor(frame);
  ASSERT_FALSE(step.ok()) << part;
  EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(step.status().message()).find(part), std::string::npos) << step.status();
}

TEST(CodecTest, DescriptorRoundTrips) {
  const auto step = ParseDescriptor(EncodeExample());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(*step, ExampleStep());
}

TEST(CodecTest, CarriesWhatValidateRefuses) {
  StepDescriptor step = ExampleStep();
  step.skips_guesser = true;
  step.tokens[0] = -4;
  step.groups[0].tables[1].length_before = 100;
  step.rows[0] = {.token = 0,
                  .wants = kWantTopLogprobs | kWantLogprobsOf | 64,
                  .max_tokens = 9,
                  .top_n = 5,
                  .logprobs_of = {1, 2, 3}};
  Frame frame;
  Serialize(step, frame);
  const auto decoded = ParseDescriptor(frame);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, step);
}

TEST(CodecTest, EmptyDescriptorRoundTrips) {
  Frame frame;
  Serialize(StepDescriptor(), frame);
  const auto step = ParseDescriptor(frame);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(*step, StepDescriptor());
}

TEST(CodecTest, EncodeReplacesWhatWasThere) {
  Frame frame(1000, 0xff);
  Serialize(ExampleStep(), frame);
  EXPECT_EQ(frame, EncodeExample());
}

TEST(CodecTest, TheHeaderIsLittleEndian) {
  const Frame frame = EncodeExample();
  EXPECT_EQ(Frame(frame.begin(), frame.begin() + 12),
            (Frame{'T', 'D', 'M', 'P', 11, 0, 0, 0, 1, 0, 0, 0}));
}

TEST(CodecTest, FramesOfOneKindAreNotTakenForAnother) {
  Frame result;
  Serialize(ExampleResult(), result);
  ExpectRefused(result, "kind 2, not 1");
  EXPECT_FALSE(ParseResult(EncodeExample()).ok());
}

TEST(CodecTest, RefusesAnotherMagicOrVersion) {
  Frame frame = EncodeExample();
  frame[0] ^= 1;
  ExpectRefused(frame, "magic");
  frame = EncodeExample();
  frame[4] = 1;
  ExpectRefused(frame, "version 1");
}

TEST(CodecTest, RefusesEveryTruncation) {
  const Frame frame = EncodeExample();
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_FALSE(ParseDescriptor(std::span(frame).first(size)).ok()) << size;
  }
  Frame result;
  Serialize(ExampleResult(), result);
  for (size_t size = 0; size < result.size(); ++size) {
    EXPECT_FALSE(ParseResult(std::span(result).first(size)).ok()) << size;
  }
}

TEST(CodecTest, RefusesTrailingBytes) {
  Frame frame = EncodeExample();
  frame.push_back(0);
  ExpectRefused(frame, "trailing");
  // Inside a section: its length grows by one value.
  for (size_t at : {size_t{0}, size_t{5}, size_t{6}, size_t{7}}) {
    frame = EncodeExample();
    const auto starts = SectionStarts(frame);
    frame.insert(frame.begin() + starts[at + 1], 4, 0);
    Set32(frame, starts[at] + 4, starts[at + 1] - starts[at] - 8 + 4);
    ExpectRefused(frame, "trailing");
  }
}

TEST(CodecTest, RefusesMissingUnknownDuplicateAndUnorderedSections) {
  const Frame frame = EncodeExample();
  const auto starts = SectionStarts(frame);
  ASSERT_EQ(starts.size(), 11u);
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    Frame missing = frame;
    missing.erase(missing.begin() + starts[i], missing.begin() + starts[i + 1]);
    ExpectRefused(missing, "missing");

    Frame duplicate = frame;
    duplicate.insert(duplicate.begin() + starts[i + 1], frame.begin() + starts[i],
                     frame.begin() + starts[i + 1]);
    ExpectRefused(duplicate, "is repeated");
  }
  for (uint32_t tag : {0u, 11u, 16u, 31u, 32u, 0xffffffffu}) {
    Frame unknown = frame;
    Set32(unknown, starts[8], tag);
    ExpectRefused(unknown, "unknown section");
  }
  Frame swapped(frame.begin(), frame.begin() + starts[1]);
  swapped.insert(swapped.end(), frame.begin() + starts[2], frame.begin() + starts[3]);
  swapped.insert(swapped.end(), frame.begin() + starts[1], frame.begin() + starts[2]);
  swapped.insert(swapped.end(), frame.begin() + starts[3], frame.end());
  ExpectRefused(swapped, "after section");
}

TEST(CodecTest, RefusesCountsThatExceedTheFrame) {
  const Frame frame = EncodeExample();
  const auto starts = SectionStarts(frame);
  // Groups, rows and sampling begin with a count; so do the arrays of the first group.
  for (size_t at : {starts[5] + 8, starts[5] + 12, starts[5] + 16, starts[5] + 20, starts[6] + 8,
                    starts[6] + 28, starts[7] + 8}) {
    for (uint32_t count : {1000u, 0x40000000u, 0x7fffffffu, 0xffffffffu}) {
      Frame broken = frame;
      Set32(broken, at, count);
      ExpectRefused(broken, "count exceeds the frame");
    }
  }
  Frame broken = frame;
  Set32(broken, starts[1] + 4, 0xfffffff0u);
  ExpectRefused(broken, "states 4294967280 bytes");
}

TEST(CodecTest, RefusesAnUnknownStepKind) {
  Frame frame = EncodeExample();
  for (uint32_t kind : {0u, 4u}) {
    Set32(frame, kHeaderBytes + 8 + 8 + 8, kind);
    ExpectRefused(frame, "step kind");
  }
}

TEST(CodecTest, RefusesABooleanThatIsNone) {
  Frame frame = EncodeExample();
  Set32(frame, kHeaderBytes + 8 + 8 + 8 + 3 * 4, 2);
  ExpectRefused(frame, "skips_guesser is 2, not 0 or 1");
}

TEST(ResultCodecTest, RoundTrips) {
  Frame frame;
  Serialize(ExampleResult(), frame);
  const auto result = ParseResult(frame);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result, ExampleResult());
}

TEST(ResultCodecTest, AFailedResultCarriesItsStatusAndNoRows) {
  StepResult result = ExampleResult();
  result.status = absl::DeadlineExceededError("rank 2 did not arrive");
  Frame frame;
  Serialize(result, frame);
  const auto decoded = ParseResult(frame);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->status, result.status);
  EXPECT_TRUE(decoded->rows.empty());
  EXPECT_EQ(decoded->timings, result.timings);
}

TEST(ResultCodecTest, LongMessagesAreCut) {
  StepResult result;
  result.status = absl::InternalError(std::string(100000, 'x'));
  Frame frame;
  Serialize(result, frame);
  const auto decoded = ParseResult(frame);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->status.message().size(), kMaxStatusMessageBytes);
}

TEST(ResultCodecTest, RefusesBrokenResults) {
  Frame frame;
  Serialize(ExampleResult(), frame);
  const size_t code_at = kHeaderBytes + 8 + 8 + 8 + 4;
  Frame broken = frame;
  Set32(broken, code_at, 17);
  EXPECT_NE(std::string(ParseResult(broken).status().message()).find("status code 17"),
            std::string::npos);
  broken = frame;
  Set32(broken, code_at, 13);
  EXPECT_NE(std::string(ParseResult(broken).status().message()).find("a failed step has results"),
            std::string::npos);

  StepResult failed;
  failed.status = absl::InternalError("x");
  Serialize(failed, frame);
  Set32(frame, code_at, 0);
  EXPECT_NE(std::string(ParseResult(frame).status().message()).find("without an error"),
            std::string::npos);
}

TEST(ResultCodecTest, MaxResultBytesBoundsTheRealSize) {
  StepDescriptor step = ExampleStep();
  step.rows[1].wants |= kWantSampleLogprob | kWantTopLogprobs | kWantLogprobsOf;
  step.rows[1].top_n = 20;
  step.rows[1].logprobs_of = {1, 2};
  const uint32_t vocab = 3000;
  StepResult result;
  result.rows = {{.tokens = {1}, .logprobs = {}, .logits = std::vector<float>(vocab, 1.0f)},
                 {.tokens = {2}, .logprobs = std::vector<TokenLogprob>(23), .logits = {}}};
  result.pooled = {1, 2};
  Frame frame;
  Serialize(result, frame);
  EXPECT_EQ(frame.size(), MaxResultBytes(step, vocab, /*hidden_size=*/2));
  // Three tokens, each with all of it.
  step.rows[1].max_tokens = 3;
  result.rows[1] = {.tokens = {2, 3, 4}, .logprobs = std::vector<TokenLogprob>(69), .logits = {}};
  Serialize(result, frame);
  EXPECT_EQ(frame.size(), MaxResultBytes(step, vocab, /*hidden_size=*/2));
  result.status = absl::InternalError(std::string(100000, 'x'));
  Serialize(result, frame);
  EXPECT_LE(frame.size(), MaxResultBytes(StepDescriptor(), vocab, /*hidden_size=*/2));
}

// A step's size on the wire depends on its tokens, not on their contexts.
TEST(FrameSizeTest, SteadyDecodeAndAdmission) {
  constexpr uint32_t kBlockSize = 16;
  Frame frame;
  // Every sequence gets a block: the largest steady step.
  Serialize(LargeStep(256, 8192, kBlockSize, 8192 / kBlockSize - 1), frame);
  EXPECT_LE(frame.size(), 64u << 10);
  Frame longer;
  Serialize(LargeStep(256, 1 << 20, kBlockSize, (1 << 20) / kBlockSize - 1), longer);
  EXPECT_EQ(longer.size(), frame.size());
  // A sequence that is new brings its whole table.
  Serialize(LargeStep(1, 1 << 20, kBlockSize), frame);
  EXPECT_LE(frame.size(), (256u << 10) + 1024);
}

}  // namespace
}  // namespace tandem::step
