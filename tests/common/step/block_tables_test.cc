#include "common/step/block_tables.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/common/step/example_step.h"

namespace tandem::step {
namespace {

using Ids = std::vector<BlockId>;

Ids Table(const BlockTables& tables, size_t group, uint32_t slot) {
  const auto span = tables.Table(group, slot);
  return Ids(span.begin(), span.end());
}

void ExpectRefused(const StepDescriptor& step, const BlockTables& tables, const std::string& part) {
  const absl::Status status = Validate(step, ExampleLimits(), tables);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status;
}

// One token at position 4 of a sequence that is new in `slot`.
StepDescriptor NewSequence(uint32_t slot) {
  StepDescriptor step;
  step.step_id = StepId{6};
  step.num_scheduled_tokens = step.num_seqs_active = 1;
  step.tokens = {1};
  step.positions = {4};
  step.query_offsets = {0, 1};
  step.sequences = {{.slot = slot, .query_len = 1, .context_len = 5, .load_snapshot = 0}};
  step.groups.assign(2, {.tables = {{.length_before = 0, .length_after = 2, .first_live = 0}},
                         .blocks = {1, 2},
                         .slot_mapping = {8}});
  return step;
}

TEST(BlockTablesTest, BeginEmpty) {
  const BlockTables tables(ExampleLimits());
  EXPECT_EQ(tables.max_length(), 8u);
  for (size_t group = 0; group < 2; ++group) {
    for (uint32_t slot = 0; slot < 4; ++slot) {
      EXPECT_EQ(Table(tables, group, slot), Ids());
      EXPECT_EQ(tables.first_live(group, slot), 0u);
    }
  }
}

TEST(BlockTablesTest, StepsAppendAndRelease) {
  BlockTables tables = ExampleTables();
  EXPECT_EQ(Table(tables, 0, 2), (Ids{3, 4, 5, 6, 15}));
  EXPECT_EQ(Table(tables, 1, 2), (Ids{kNoBlock, kNoBlock, kNoBlock, 2, 9}));
  tables.Apply(ExampleStep());
  EXPECT_EQ(Table(tables, 0, 2), (Ids{3, 4, 5, 6, 15, 8}));
  EXPECT_EQ(Table(tables, 1, 2), (Ids{kNoBlock, kNoBlock, kNoBlock, kNoBlock, 9, 4}));
  EXPECT_EQ(tables.first_live(1, 2), 4u);
  EXPECT_EQ(Table(tables, 0, 0), Ids{0});
  EXPECT_EQ(Table(tables, 1, 0), (Ids{7, 1}));
}

TEST(BlockTablesTest, ANewSequenceReplacesWhatItsSlotHeld) {
  BlockTables tables = ExampleTables();
  const StepDescriptor step = NewSequence(2);
  ASSERT_EQ(Validate(step, ExampleLimits(), tables), absl::OkStatus());
  tables.Apply(step);
  for (size_t group = 0; group < 2; ++group) {
    EXPECT_EQ(Table(tables, group, 2), (Ids{1, 2}));
    EXPECT_EQ(tables.first_live(group, 2), 0u);
  }
}

// The lengths before a step say whether it continues the steps that were applied.
TEST(BlockTablesTest, AStepThatIsRepeatedOrMissingIsRefused) {
  BlockTables tables = ExampleTables();
  StepDescriptor step = ExampleStep();
  ExpectRefused(step, BlockTables(ExampleLimits()),
                "sequence 0 (slot 2) has 0 blocks, needed 5 before the step");
  tables.Apply(step);
  ExpectRefused(step, tables, "sequence 0 (slot 2) has 6 blocks, needed 5 before the step");
}

TEST(BlockTablesTest, ATableNeitherShrinksNorOutgrowsTheContext) {
  const BlockTables tables = ExampleTables();
  StepDescriptor step = ExampleStep();
  step.groups[0].tables[0].length_after = 4;
  ExpectRefused(step, tables, "sequence 0 (slot 2) has 4 blocks after the step, needed 6..8");
  step.groups[0].tables[0].length_after = 9;
  ExpectRefused(step, tables, "sequence 0 (slot 2) has 9 blocks after the step, needed 6..8");
}

TEST(BlockTablesTest, ASlotOutOfRangeIsRefused) {
  ExpectRefused(NewSequence(4), BlockTables(ExampleLimits()), "has slot 4, needed below 4");
}

// Tables of the previous epoch do not continue.
TEST(BlockTablesTest, AnEpochBeginsWithEmptyTables) {
  BlockTables tables = ExampleTables();
  tables = BlockTables(ExampleLimits());
  EXPECT_EQ(Table(tables, 0, 2), Ids());
  EXPECT_EQ(tables.first_live(1, 2), 0u);
  ExpectRefused(ExampleStep(), tables, "has 0 blocks, needed 5 before the step");
  const StepDescriptor step = NewSequence(2);
  ASSERT_EQ(Validate(step, ExampleLimits(), tables), absl::OkStatus());
  tables.Apply(step);
  EXPECT_EQ(Table(tables, 0, 2), (Ids{1, 2}));
}

}  // namespace
}  // namespace tandem::step
