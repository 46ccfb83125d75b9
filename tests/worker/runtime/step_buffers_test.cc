// What StepBuffers stages: bytes that follow from what changes, and the update that keeps the
// device's block tables equal to the host's.
#include "worker/runtime/step_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "common/step/block_tables.h"
#include "tests/worker/runtime/fake_device.h"

namespace tandem::worker {
namespace {

step::StepLimits Limits(uint32_t max_seqs, uint32_t max_model_len, size_t num_groups) {
  return {.max_tokens = 2048,
          .max_seqs = max_seqs,
          .max_model_len = max_model_len,
          .vocab_size = 1000,
          .block_size = 16,
          .num_blocks = std::vector<uint32_t>(num_groups, 1 << 20),
          .windows = {},
          .max_result_bytes = 1 << 20};
}

// What a step does to the table of one sequence in every group.
struct Change {
  uint32_t slot = 0;
  uint32_t context_len = 0;
  step::TableDelta delta;
};

// A decode step that samples greedily, with consecutive new blocks from `next_block` on.
step::StepDescriptor Decode(const std::vector<Change>& changes, size_t num_groups,
                            BlockId& next_block) {
  step::StepDescriptor step;
  step.kind = step::StepKind::kDecode;
  step.query_offsets = {0};
  step.groups.resize(num_groups);
  for (uint32_t s = 0; s < changes.size(); ++s) {
    const Change& change = changes[s];
    step.tokens.push_back(7);
    step.positions.push_back(static_cast<int32_t>(change.context_len) - 1);
    step.query_offsets.push_back(s + 1);
    step.sequences.push_back(
        {.slot = change.slot, .query_len = 1, .context_len = change.context_len});
    step.rows.push_back({.token = s});
    step.sampling.push_back({.temperature = 0});
    for (auto& group : step.groups) {
      group.tables.push_back(change.delta);
      group.slot_mapping.push_back(0);
    }
  }
  for (auto& group : step.groups) {
    for (const Change& change : changes) {
      for (uint32_t i = 0; i < change.delta.num_appended(); ++i) {
        group.blocks.push_back(next_block++);
      }
    }
  }
  step.num_scheduled_tokens = step.num_seqs_active = static_cast<uint32_t>(changes.size());
  return step;
}

class StepBuffersTest : public ::testing::Test {
 protected:
  void Create(const step::StepLimits& limits) {
    auto buffers = StepBuffers::Create(limits, *device_);
    auto tables = DeviceTables::Create(limits, *device_);
    auto copy = device_->AllocateHost(DeviceTables::DeviceBytes(limits));
    ASSERT_TRUE(buffers.ok() && tables.ok() && copy.ok());
    buffers_ = std::make_unique<StepBuffers>(*std::move(buffers));
    tables_ = std::make_unique<DeviceTables>(*std::move(tables));
    copy_ = *std::move(copy);
  }

  // Stages and runs the update of the tables; the bytes that were uploaded.
  size_t Run(const step::StepDescriptor& step) {
    notes_->Clear();
    const StepBuffers::Staged staged = buffers_->Stage(step, *tables_);
    device_->BeginEncode(kernels::EncodeMode::kRun);
    buffers_->Upload(*device_);
    device_->Encode(staged.table_update);
    device_->Download(copy_.data(), tables_->data(), copy_.bytes());
    EXPECT_TRUE(device_->SubmitAndWait(Deadline::After(std::chrono::seconds(60))).ok());
    EXPECT_EQ(notes_->uploads.size(), 1u);
    return notes_->uploads.at(0).bytes;
  }

  // The live part of a table, as the last Run left it on the device.
  std::vector<BlockId> OnDevice(size_t group, uint32_t slot, uint32_t begin, size_t end) const {
    const auto* const row =
        reinterpret_cast<const BlockId*>(copy_.data()) + tables_->Row(group, slot);
    return {row + begin, row + end};
  }

  const std::shared_ptr<FakeDeviceNotes> notes_ = std::make_shared<FakeDeviceNotes>();
  const std::unique_ptr<kernels::Backend> device_ = MakeFakeDevice({}, notes_);
  std::unique_ptr<StepBuffers> buffers_;
  std::unique_ptr<DeviceTables> tables_;
  kernels::Buffer copy_;
};

TEST_F(StepBuffersTest, ADecodeStepUploadsWhatChangesWhateverTheContexts) {
  constexpr uint32_t kSeqs = 256, kContext = 8192;
  Create(Limits(kSeqs, kContext, 1));
  BlockId next_block = 0;
  const auto bytes_at = [&](uint32_t context_len, uint32_t appended) {
    const uint32_t blocks = (context_len + 15) / 16;
    std::vector<Change> changes;
    for (uint32_t slot = 0; slot < kSeqs; ++slot) {
      changes.push_back({slot, context_len, {blocks - appended, blocks, 0}});
    }
    return Run(Decode(changes, 1, next_block));
  };
  // Whole tables would be 512 KiB more.
  EXPECT_LE(bytes_at(kContext, 0), 30u << 10);
  EXPECT_EQ(bytes_at(kContext, 0), bytes_at(16, 0));
  EXPECT_LE(bytes_at(kContext, 1),
            bytes_at(kContext, 0) + kSeqs * (sizeof(kernels::ScatterRun) + 4));
}

TEST_F(StepBuffersTest, EveryTableAtOnceFits) {
  constexpr uint32_t kSeqs = 8, kContext = 512, kGroups = 3;
  Create(Limits(kSeqs, kContext, kGroups));
  std::vector<Change> changes;
  for (uint32_t slot = 0; slot < kSeqs; ++slot) {
    changes.push_back({slot, kContext, {0, kContext / 16, 0}});
  }
  BlockId next_block = 1;
  Run(Decode(changes, kGroups, next_block));
  ASSERT_EQ(next_block, 1 + 8 * 32 * 3);
  for (size_t i = 0; i < tables_->size(); ++i) {
    EXPECT_EQ(reinterpret_cast<const BlockId*>(copy_.data())[i], static_cast<BlockId>(i + 1));
  }
}

// Sequences come, grow, lose blocks behind their window and make room for others.
TEST_F(StepBuffersTest, TheDevicesTablesFollowTheHosts) {
  constexpr uint32_t kSeqs = 5, kBlocks = 12, kGroups = 2;
  const step::StepLimits limits = Limits(kSeqs, kBlocks * 16, kGroups);
  Create(limits);
  step::BlockTables host(limits);
  std::mt19937 random(1);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  BlockId next_block = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<Change> changes;
    for (uint32_t slot = 0; slot < kSeqs; ++slot) {
      if (below(3) == 0) continue;  // not in this step
      const auto length = static_cast<uint32_t>(host.Table(0, slot).size());
      const bool is_new = length == 0 || length + 2 > kBlocks || below(8) == 0;
      step::TableDelta delta;
      delta.length_before = is_new ? 0 : length;
      delta.length_after = is_new ? 1 + below(4) : length + below(3);
      const uint32_t live = is_new ? 0 : host.first_live(0, slot);
      delta.first_live = live + below(delta.length_after - live);
      changes.push_back({slot, delta.length_after * 16, delta});
    }
    std::shuffle(changes.begin(), changes.end(), random);
    const step::StepDescriptor step = Decode(changes, kGroups, next_block);
    host.Apply(step);
    Run(step);
    for (size_t group = 0; group < kGroups; ++group) {
      for (uint32_t slot = 0; slot < kSeqs; ++slot) {
        const auto table = host.Table(group, slot);
        const uint32_t live = host.first_live(group, slot);
        ASSERT_EQ(OnDevice(group, slot, live, table.size()),
                  std::vector<BlockId>(table.begin() + live, table.end()))
            << "step " << i << " group " << group << " slot " << slot;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::worker
