// Every rule of Validate: one mutation of a valid step each.
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>

#include "common/step/descriptor.h"
#include "gtest/gtest.h"
#include "tests/common/step/example_step.h"

namespace tandem::step {
namespace {

using absl::StatusCode;

struct Case {
  const char* name;
  std::function<void(StepDescriptor&)> mutate;
  const char* message;  // part of the error
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ValidateRule : public testing::TestWithParam<Case> {};

TEST_P(ValidateRule, RefusesTheMutation) {
  StepDescriptor step = ExampleStep();
  GetParam().mutate(step);
  const absl::Status status = Validate(step, ExampleLimits(), ExampleTables());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_NE(std::string(status.message()).find(GetParam().message), std::string::npos) << status;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

const Case kCases[] = {
    {"StepIdZero", [](auto& s) { s.step_id.value = 0; }, "step id is 0"},
    {"NoTokens", [](auto& s) { s.num_scheduled_tokens = 0; }, "0 scheduled tokens"},
    {"TooManyTokens", [](auto& s) { s.num_scheduled_tokens = 9; }, "9 scheduled tokens"},
    {"NoSequences", [](auto& s) { s.num_seqs_active = 0; }, "0 sequences"},
    {"TooManySequences", [](auto& s) { s.num_seqs_active = 5; }, "5 sequences"},
    {"TokensShort", [](auto& s) { s.tokens.pop_back(); }, "3 tokens, needed 4"},
    {"PositionsLong", [](auto& s) { s.positions.push_back(3); }, "5 positions, needed 4"},
    {"OffsetsShort", [](auto& s) { s.query_offsets.pop_back(); }, "2 query offsets, needed 3"},
    {"SequencesLong", [](auto& s) { s.sequences.push_back({}); }, "3 sequences, needed 2"},
    {"GroupMissing", [](auto& s) { s.groups.pop_back(); }, "1 KV groups, needed 2"},

    {"LoadsNoSuchSnapshot", [](auto& s) { s.sequences[0].load_snapshot = 3; },
     "sequence 0 names snapshot 3, there are 3"},
    {"LoadsBelowNone", [](auto& s) { s.sequences[0].load_snapshot = -2; }, "names snapshot -2"},
    {"LoadsAtPositionZero", [](auto& s) { s.sequences[1].load_snapshot = 0; },
     "sequence 1 loads a snapshot at position 0"},
    {"SavesNoSuchSnapshot", [](auto& s) { s.sequences[1].save_snapshot = 3; },
     "sequence 1 names snapshot 3"},
    {"SavesAfterNothing", [](auto& s) { s.sequences[1].save_after = 0; },
     "saves snapshot 1 after 0"},
    {"SavesAfterTheChunk", [](auto& s) { s.sequences[1].save_after = 4; },
     "sequence 1 of 3 tokens saves snapshot 1 after 4"},
    {"SavesNothing", [](auto& s) { s.sequences[1].save_snapshot = -1; },
     "saves snapshot -1 after 2"},
    {"SavesTwice",
     [](auto& s) {
       s.sequences[0].save_snapshot = 1;
       s.sequences[0].save_after = 1;
     },
     "snapshot 1 is saved twice"},
    {"LoadsAndSaves", [](auto& s) { s.sequences[1].save_snapshot = 2; },
     "snapshot 2 is loaded and saved"},
    {"BeginsWithoutItsState",
     [](auto& s) {
       s.sequences[0].load_snapshot = -1;
       s.groups[0].tables[0].length_before = 0;
       s.groups[0].blocks = {0, 1, 2, 3, 4, 8, 5};
       s.groups[0].slot_mapping = {8 * 4, 20, 21, 22};
     },
     "sequence 0 begins at position 20, which needs a snapshot"},

    {"TokenPastVocabulary", [](auto& s) { s.tokens[1] = 100; }, "token 1 has id 100"},
    {"TokenNegative", [](auto& s) { s.tokens[0] = -1; }, "token 0 has id -1"},

    {"RefersToNoSample", [](auto& s) { s.references[0].sample = 2; },
     "token 0 refers to sample 2, the step before draws 2"},
    {"RefersToAnotherSlot", [](auto& s) { s.references[0].sample = 0; },
     "token 0 of slot 2 at position 20 refers to sample 0, which is drawn for slot 3 at position "
     "2"},
    {"RefersToAnotherPosition",
     [](auto& s) {
       s.sequences[0].context_len = 22;
       s.positions[0] = 21;
       s.groups[0].slot_mapping[0] = 8 * 4 + 1;
       s.groups[1].slot_mapping[0] = 4 * 4 + 1;
     },
     "token 0 of slot 2 at position 21 refers to sample 1, which is drawn for slot 2 at position "
     "20"},
    {"RefersInsideASequence", [](auto& s) { s.references[0].token = 2; },
     "a reference stands for token 2, needed the last one of a sequence"},
    {"RefersBeyondTheTokens", [](auto& s) { s.references[0].token = 4; },
     "a reference stands for token 4"},
    {"PoolsNothing", [](auto& s) { s.pools[0].end = 2; }, "pool 0 is of tokens 2..2, needed some"},
    {"PoolsTwoSequences", [](auto& s) { s.pools[0].begin = 0; }, "pool 0 is of tokens 0..4"},
    {"PoolsBeyondTheTokens", [](auto& s) { s.pools[0].end = 5; }, "pool 0 is of tokens 2..5"},
    {"PoolsFromBeyondTheTokens", [](auto& s) { s.pools[0] = {.begin = 4, .end = UINT32_MAX}; },
     "pool 0 is of tokens 4..4294967295"},
    {"PoolsASequenceTwice",
     [](auto& s) {
       s.pools = {{.begin = 1, .end = 2}, {.begin = 2, .end = 4}};
     },
     "pool 1 is of tokens 2..4"},
    {"PoolsBackwards",
     [](auto& s) {
       s.pools = {{.begin = 1, .end = 2}, {.begin = 0, .end = 1}};
     },
     "pool 1 is of tokens 0..1"},
    {"PoolsTooMany", [](auto& s) { s.pools.resize(5); }, "5 states are pooled, at most 4 fit"},
    {"RefersTwice", [](auto& s) { s.references.push_back(s.references[0]); },
     "a reference stands for token 0, needed the last one of a sequence, ascending"},
    {"RefersWithAnId", [](auto& s) { s.tokens[0] = 7; },
     "token 0 has id 7 and a reference, needed id 0"},

    {"OffsetsBegin", [](auto& s) { s.query_offsets[0] = 1; }, "query offsets begin at 1"},
    {"OffsetsDisagree", [](auto& s) { s.query_offsets[1] = 2; }, "query offsets 0..2"},
    {"OffsetsDescend", [](auto& s) { s.query_offsets[2] = 0; }, "query offsets 1..0"},
    {"OffsetsEndEarly",
     [](auto& s) {
       s.sequences[1] = {.slot = 0, .query_len = 2, .context_len = 2};
       s.query_offsets[2] = 3;
     },
     "query offsets end at 3"},
    {"QueryLenHuge", [](auto& s) { s.sequences[1].query_len = 0xffffffffu; }, "4294967295 tokens"},
    {"QueryLenZero", [](auto& s) { s.sequences[0].query_len = 0; }, "has no tokens"},
    {"SlotRange", [](auto& s) { s.sequences[0].slot = 4; }, "has slot 4, needed below 4"},
    {"Adapter", [](auto& s) { s.sequences[1].adapter = 2; },
     "sequence 1 has adapter 2, there are 1"},
    {"SlotTwice", [](auto& s) { s.sequences[0].slot = 0; }, "slot 0, which is taken"},
    {"ContextShort", [](auto& s) { s.sequences[1].context_len = 2; }, "context length 2"},
    {"ContextLong", [](auto& s) { s.sequences[0].context_len = 33; }, "context length 33"},
    {"PositionWrong", [](auto& s) { s.positions[2] = 2; }, "position 2, needed 1"},
    {"PositionNegative", [](auto& s) { s.positions[1] = -1; }, "position -1, needed 0"},
    {"ContextDisagrees", [](auto& s) { s.sequences[0].context_len = 22; },
     "position 20, needed 21"},
    {"DecodeOfSeveral", [](auto& s) { s.kind = StepKind::kDecode; }, "3 tokens in a decode step"},

    {"DeltasShort", [](auto& s) { s.groups[0].tables.pop_back(); },
     "1 block table deltas, needed 2"},
    {"LengthBefore", [](auto& s) { s.groups[0].tables[0].length_before = 4; },
     "KV group 0: the block table of sequence 0 (slot 2) has 5 blocks, needed 4 before the step"},
    {"LengthBeforeOfAnEmptySlot", [](auto& s) { s.groups[1].tables[1].length_before = 1; },
     "KV group 1: the block table of sequence 1 (slot 0) has 0 blocks, needed 1 before the step"},
    {"TableTooShort", [](auto& s) { s.groups[0].tables[0].length_after = 5; },
     "has 5 blocks after the step, needed 6..8"},
    {"TableShrinks",
     [](auto& s) {
       s.sequences[0].context_len = 4;
       s.positions[0] = 3;
       s.groups[0].tables[0].length_after = 4;
     },
     "has 4 blocks after the step, needed 5..8"},
    {"TableTooLong", [](auto& s) { s.groups[0].tables[1].length_after = 9; },
     "has 9 blocks after the step, needed 1..8"},
    {"BlocksShort", [](auto& s) { s.groups[1].blocks.pop_back(); },
     "KV group 1: 2 appended blocks, needed at least 3"},
    {"BlocksLong", [](auto& s) { s.groups[1].blocks.push_back(0); },
     "KV group 1: 4 appended blocks, needed 3"},
    {"BlockRange", [](auto& s) { s.groups[0].blocks[0] = 16; },
     "block 5 of sequence 0 is 16, needed 0..15"},
    {"BlockNegative", [](auto& s) { s.groups[0].blocks[1] = -2; }, "block 0 of sequence 1 is -2"},
    {"NoBlock", [](auto& s) { s.groups[1].blocks[0] = kNoBlock; }, "block 5 of sequence 0 is -1"},
    {"ReleasedWithoutWindow", [](auto& s) { s.groups[0].tables[0].first_live = 1; },
     "KV group 0: the block table of sequence 0 (slot 2) lives from block 1, but position 20 sees "
     "from position 0 on, which is block 0"},
    {"ReleasedInWindow", [](auto& s) { s.groups[1].tables[0].first_live = 5; },
     "KV group 1: the block table of sequence 0 (slot 2) lives from block 5, but position 20 sees "
     "from position 16 on, which is block 4"},
    {"ReleasedBlocksComeBack", [](auto& s) { s.groups[1].tables[0].first_live = 2; },
     "lives from block 2, but the blocks before 3 were released"},
    {"SlotsShort", [](auto& s) { s.groups[0].slot_mapping.pop_back(); }, "3 slots, needed 4"},
    {"SlotDisagrees", [](auto& s) { s.groups[0].slot_mapping[2] = 5; },
     "token 2 of sequence 1 has slot 5, its block table says 1"},
    {"SlotNegative", [](auto& s) { s.groups[1].slot_mapping[0] = -1; }, "has slot -1"},
    {"BlockWrittenTwice",
     [](auto& s) {
       s.groups[0].blocks[1] = 8;
       s.groups[0].slot_mapping = {32, 32, 33, 34};
     },
     "block 8 is written by sequences 0 and 1"},

    {"RowToken", [](auto& s) { s.rows[1].token = 4; }, "row 1 is of token 4"},
    {"RowOrder", [](auto& s) { s.rows[1].token = 0; }, "row 1 is of token 0, needed ascending"},
    {"RowWantsNothing", [](auto& s) { s.rows[1].wants = 0; }, "row 1 wants 0"},
    {"RowWantsUnknown", [](auto& s) { s.rows[1].wants = 64; }, "row 1 wants 64"},
    {"RowNoTokens", [](auto& s) { s.rows[1].max_tokens = 0; }, "up to 0 tokens, needed 1..16"},
    {"RowTooManyTokens", [](auto& s) { s.rows[1].max_tokens = 17; }, "row 1 takes up to 17"},
    {"RowTopZero", [](auto& s) { s.rows[0].wants |= kWantTopLogprobs; }, "the top 0"},
    {"RowTopTooMany",
     [](auto& s) {
       s.rows[0].wants |= kWantTopLogprobs;
       s.rows[0].top_n = 21;
     },
     "the top 21 log-probabilities, needed 1..20"},
    {"RowLogprobsOfNothing", [](auto& s) { s.rows[0].wants |= kWantLogprobsOf; }, "of 0 ids"},
    {"RowLogprobsOfTooMany",
     [](auto& s) {
       s.rows[0].wants |= kWantLogprobsOf;
       s.rows[0].logprobs_of.assign(17, 1);
     },
     "of 17 ids, needed 1..16"},
    {"RowLogprobsOfNegative",
     [](auto& s) {
       s.rows[0].wants |= kWantLogprobsOf;
       s.rows[0].logprobs_of = {1, -1};
     },
     "of id -1"},
    {"RowLogprobsPastVocabulary",
     [](auto& s) {
       s.rows[0].wants |= kWantLogprobsOf;
       s.rows[0].logprobs_of = {100};
     },
     "of id 100, the vocabulary ends at 100"},
    {"RowSampleLogprobWithoutSample",
     [](auto& s) {
       s.rows[0].wants = kWantLogits | kWantSampleLogprob;
       s.sampling.erase(s.sampling.begin());
     },
     "and no sample"},
    {"RowTopNUnwanted", [](auto& s) { s.rows[0].top_n = 3; }, "does not want"},
    {"RowIdsUnwanted", [](auto& s) { s.rows[0].logprobs_of = {1}; }, "does not want"},

    {"SamplingMissing", [](auto& s) { s.sampling.pop_back(); }, "1 samplings, needed 2"},
    {"SamplingOfUnsampledRow", [](auto& s) { s.rows[0].wants = kWantLogits; },
     "2 samplings, needed 1"},
    {"TemperatureNegative", [](auto& s) { s.sampling[0].temperature = -1; }, "temperature is -1"},
    {"TemperatureNan", [](auto& s) { s.sampling[1].temperature = kNan; }, "temperature"},
    {"TemperatureInfinite", [](auto& s) { s.sampling[1].temperature = kInf; },
     "temperature is inf"},
    {"TopPZero", [](auto& s) { s.sampling[0].top_p = 0; }, "top_p is 0"},
    {"TopPAboveOne", [](auto& s) { s.sampling[0].top_p = 2; }, "top_p is 2"},
    {"TopPNan", [](auto& s) { s.sampling[0].top_p = kNan; }, "top_p"},
    {"MinPNegative", [](auto& s) { s.sampling[0].min_p = -0.5f; }, "min_p is -0.5"},
    {"MinPAboveOne", [](auto& s) { s.sampling[0].min_p = 1.5f; }, "min_p is 1.5"},
    {"MinPNan", [](auto& s) { s.sampling[0].min_p = kNan; }, "min_p"},
    {"TopKNegative", [](auto& s) { s.sampling[0].top_k = -1; }, "top_k is -1"},
    {"SamplingPosition", [](auto& s) { s.sampling[0].position = 33; }, "position 33"},
    {"TypicalPZero", [](auto& s) { s.sampling[0].typical_p = 0; }, "typical_p is 0"},
    {"TypicalPNan", [](auto& s) { s.sampling[0].typical_p = kNan; }, "typical_p"},
    {"XtcProbability", [](auto& s) { s.sampling[0].xtc_probability = 1.5f; },
     "xtc_probability is 1.5"},
    {"XtcThreshold", [](auto& s) { s.sampling[0].xtc_threshold = -1; }, "xtc_threshold is -1"},
    {"AdjustedNegative", [](auto& s) { s.sampling[0].adjustments = {{.id = -1}}; },
     "adjusts the logit of id -1 after -1"},
    {"AdjustedTwice",
     [](auto& s) {
       s.sampling[0].adjustments = {{.id = 5}, {.id = 5}};
     },
     "adjusts the logit of id 5 after 5"},
    {"AdjustedPastVocabulary", [](auto& s) { s.sampling[0].adjustments = {{.id = 100}}; },
     "adjusts the logit of id 100 after -1, needed rising ids below 100"},
    {"AdjustedTooMany", [](auto& s) { s.sampling[0].adjustments.resize(6721); },
     "adjusts 6721 logits, at most 6720 fit"},
    {"BiasNan", [](auto& s) { s.sampling[0].adjustments = {{.id = 1, .bias = kNan}}; }, "bias nan"},
    {"BiasInfinite", [](auto& s) { s.sampling[0].adjustments = {{.id = 1, .bias = kInf}}; },
     "bias inf"},
    {"RepetitionZero", [](auto& s) { s.sampling[0].adjustments = {{.id = 1, .repetition = 0}}; },
     "repetition 0"},
    {"RepetitionNan", [](auto& s) { s.sampling[0].adjustments = {{.id = 1, .repetition = kNan}}; },
     "repetition nan"},
    {"PenaltyInfinite", [](auto& s) { s.sampling[0].adjustments = {{.id = 1, .penalty = -kInf}}; },
     "penalty -inf"},
    {"MaskTooShort", [](auto& s) { s.sampling[1].allowed.pop_back(); },
     "3 mask words of sampling 1, needed 4"},
    {"MaskTooLong", [](auto& s) { s.sampling[0].allowed.assign(5, 1); },
     "5 mask words of sampling 0, needed 4"},
    {"MaskPastVocabulary", [](auto& s) { s.sampling[1].allowed[3] = 16; },
     "the mask of sampling 1 has ids from the vocabulary's end on, 100"},
    {"MaskEmpty", [](auto& s) { s.sampling[1].allowed.assign(4, 0); },
     "the mask of sampling 1 has no id"},
};

INSTANTIATE_TEST_SUITE_P(Rules, ValidateRule, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ValidateTest, AcceptsTheExample) {
  EXPECT_EQ(Validate(ExampleStep(), ExampleLimits(), ExampleTables()), absl::OkStatus());
}

// Only the step right before counts.
TEST(ValidateTest, AReferenceToAnEarlierStepIsRefused) {
  StepDescriptor step = ExampleStep();
  BlockTables tables = ExampleTables();
  step.rows.clear();
  step.sampling.clear();
  ASSERT_EQ(Validate(step, ExampleLimits(), tables), absl::OkStatus());
  tables.Apply(step);
  EXPECT_TRUE(tables.drawn().empty());
  step = ExampleStep();
  for (GroupDeltas& group : step.groups) group.tables[0].length_before = 6;
  step.groups[0].blocks = {0};
  step.groups[1].blocks = {7, 1};
  EXPECT_EQ(Validate(step, ExampleLimits(), tables).message(),
            "step: token 0 refers to sample 1, the step before draws 0");
}

TEST(ValidateTest, AModelWithoutRecurrentStatesBeginsAnywhereAndHasNoSnapshots) {
  StepLimits limits = ExampleLimits();
  limits.num_snapshots.reset();
  StepDescriptor step = ExampleStep();
  EXPECT_NE(Validate(step, limits, ExampleTables()), absl::OkStatus());
  for (SequenceEntry& sequence : step.sequences) {
    sequence.load_snapshot = sequence.save_snapshot = kv::kNoSnapshot;
    sequence.save_after = 0;
  }
  step.groups[0].tables[0].length_before = 0;
  step.groups[0].blocks = {0, 1, 2, 3, 4, 8, 5};
  step.groups[0].slot_mapping = {8 * 4, 20, 21, 22};
  EXPECT_EQ(Validate(step, limits, ExampleTables()), absl::OkStatus());
}

TEST(ValidateTest, AcceptsAllAtTheirLimits) {
  StepDescriptor step = ExampleStep();
  step.sampling[0] = {.temperature = 0, .top_p = 1, .min_p = 1, .top_k = 1 << 30, .position = 32};
  step.rows[1].wants = kWantLogits;
  step.sampling.pop_back();
  EXPECT_EQ(Validate(step, ExampleLimits(), ExampleTables()), absl::OkStatus());
  step.rows.clear();
  step.sampling.clear();
  EXPECT_EQ(Validate(step, ExampleLimits(), ExampleTables()), absl::OkStatus());
}

TEST(ValidateTest, AcceptsADecodeStepAndBlocksBeyondTheContext) {
  StepDescriptor step = LargeStep(3, 17, 16);
  StepLimits limits = LargeLimits(step, 16);
  EXPECT_EQ(Validate(step, limits, BlockTables(limits)), absl::OkStatus());
  step.groups[0].blocks.push_back(0);
  step.groups[0].tables.back().length_after += 1;
  EXPECT_EQ(Validate(step, limits, BlockTables(limits)), absl::OkStatus());
}

// One sequence of `query_len` tokens that end at `context_len`, blocks of 4, one group, new in its
// slot. Its table lives from block `first_live`.
StepDescriptor WindowedStep(uint32_t query_len, uint32_t context_len, uint32_t first_live) {
  StepDescriptor step;
  step.step_id = StepId{1};
  step.epoch = Epoch{1};
  step.num_scheduled_tokens = query_len;
  step.num_seqs_active = 1;
  step.query_offsets = {0, query_len};
  step.sequences = {{.slot = 0, .query_len = query_len, .context_len = context_len}};
  const auto block_of = [](uint32_t index) { return static_cast<BlockId>(20 - index); };
  const uint32_t length = (context_len + 3) / 4;
  GroupDeltas group;
  group.tables = {{.length_before = 0, .length_after = length, .first_live = first_live}};
  for (uint32_t i = first_live; i < length; ++i) group.blocks.push_back(block_of(i));
  for (uint32_t p = context_len - query_len; p < context_len; ++p) {
    step.tokens.push_back(1);
    step.positions.push_back(static_cast<int32_t>(p));
    group.slot_mapping.push_back(block_of(p / 4) * 4 + static_cast<int32_t>(p % 4));
  }
  step.groups = {std::move(group)};
  step.rows = {{.token = query_len - 1}};
  step.sampling = {{.position = context_len}};
  return step;
}

// Blocks may be missing exactly where no token of the step reads or writes a position in them.
TEST(ValidateTest, BlocksMayBeReleasedOnlyBehindTheWindow) {
  for (const kv::Window window : std::initializer_list<kv::Window>{
           0, 1, 2, 4, 5, 9, 100, {1, true}, {4, true}, {6, true}, {100, true}}) {
    StepLimits limits = ExampleLimits();
    limits.max_tokens = 64;
    limits.max_model_len = 64;
    limits.num_blocks = {21};
    limits.windows = {window};
    limits.num_snapshots.reset();
    for (uint32_t context_len = 1; context_len <= 24; ++context_len) {
      for (uint32_t query_len = 1; query_len <= context_len; ++query_len) {
        const uint32_t first = context_len - query_len;
        for (uint32_t first_live = 0; 4 * first_live < context_len; ++first_live) {
          // The last block that is missing; the first token sees farthest back: (first - window,
          // first], or its chunk.
          const uint32_t last_position = 4 * first_live - 1;
          const bool in_window = window.chunked ? last_position >= first - first % window.tokens
                                                : last_position + window.tokens > first;
          const bool seen = first_live > 0 && (window.tokens == 0 || in_window);
          const StepDescriptor step = WindowedStep(query_len, context_len, first_live);
          EXPECT_EQ(Validate(step, limits, BlockTables(limits)).code(),
                    seen ? StatusCode::kInvalidArgument : StatusCode::kOk)
              << (window.chunked ? "chunk " : "window ") << window.tokens << ", context "
              << context_len << ", query " << query_len << ", lives from " << first_live;
        }
      }
    }
  }
}

TEST(ValidateTest, AcceptsLogprobsAndARowPerToken) {
  StepDescriptor step = ExampleStep();
  step.rows = {
      {.token = 0, .wants = kWantSample | kWantSampleLogprob | kWantTopLogprobs, .top_n = 20},
      {.token = 1, .wants = kWantLogprobsOf, .logprobs_of = {99}},
      {.token = 2, .wants = kWantLogprobsOf | kWantTopLogprobs, .top_n = 1, .logprobs_of = {0}},
      {.token = 3, .wants = kWantSample | kWantSampleLogprob}};
  EXPECT_EQ(Validate(step, ExampleLimits(), ExampleTables()), absl::OkStatus());
  EXPECT_EQ(NumLogprobs(step.rows[0]), 21u);
  EXPECT_EQ(NumLogprobs(step.rows[1]), 1u);
  EXPECT_EQ(NumLogprobs(step.rows[2]), 2u);
  StepLimits small = ExampleLimits();
  small.vocab_size = 19;
  EXPECT_NE(Validate(step, small, ExampleTables())
                .message()
                .find("the top 20 log-probabilities, needed 1..19"),
            absl::string_view::npos);
}

TEST(ValidateTest, RefusesAResultThatDoesNotFit) {
  StepDescriptor step = ExampleStep();
  step.rows[1].wants |= kWantLogits;
  StepLimits limits = ExampleLimits();
  limits.vocab_size = 1 << 20;
  const absl::Status status = Validate(step, limits, ExampleTables());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("at most 8192 fit"), std::string::npos) << status;
}

TEST(ValidateTest, RefusesBrokenLimits) {
  StepLimits limits = ExampleLimits();
  limits.block_size = 0;
  EXPECT_EQ(Validate(ExampleStep(), limits, BlockTables()).code(), StatusCode::kInvalidArgument);
}

TEST(DebugStringTest, NamesWhatIsInTheStep) {
  const std::string text = DebugString(ExampleStep());
  for (const char* part : {"step 5 epoch 3 mixed", "tokens 0 1 2 3", "slot 2: query 1, context 21",
                           "tables 5..6 from 0 0..1 from 0 · blocks 8 0", "row: token 0 wants 9",
                           "typical_p 0.8 xtc 0.5 of 0.2 adjustments 0:+-inf/1-0 99:+2/1.5-0.25\n",
                           "adjustments  of 3 ids\n", "token 0 is sample 1 of the step before"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_NE(DebugString(LargeStep(20, 8, 8)).find("... (20)"), std::string::npos);
}

}  // namespace
}  // namespace tandem::step
