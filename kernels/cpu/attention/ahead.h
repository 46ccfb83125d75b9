// Reading K and V ahead of the products. Included by files that are compiled once per instruction
// set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_AHEAD_H_
#define TANDEM_KERNELS_CPU_ATTENTION_AHEAD_H_

#include "kernels/cpu/attention/pages.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Prefetches the K and V of the next tile while this one is unpacked and multiplied. Pages are
// scattered, so the machine cannot guess them.
class ReadAhead {
 public:
  static constexpr bool kStreams = false;

  // The rows that come next, of `range` within one tile, of all KV heads of an item; of whole
  // blocks if those of one head are no run of memory.
  void Start(const AttentionTask& task, const int32_t* table, const AttentionItem& item,
             PositionRange range) {
    Clear();
    const KvPages& kv = task.params.pages;
    size_t bytes = 0;
    const auto add = [&](const void* pages, size_t row_bytes, PositionRange rows) {
      const size_t other_heads = (item.kv_heads - 1) * kv.block_size * row_bytes;
      ForRuns(kv, table, item.kv_head, rows, pages, row_bytes,
              [&](int32_t, const unsigned char* row, int32_t count) {
                const size_t size = static_cast<size_t>(count) * row_bytes + other_heads;
                runs_[num_runs_++] = {row, row + size};
                bytes += size;
              });
    };
    const PositionRange whole = WholeBlocks(kv, range);
    add(kv.k, task.k_row_bytes, kv.k_columns || item.kv_heads > 1 ? whole : range);
    if (!kv.latent) add(kv.v, task.v_row_bytes, item.kv_heads > 1 ? whole : range);
    lines_ = static_cast<int>(bytes / (kLine * item.kv_heads * Pieces(kv, item))) + 1;
  }
  void Clear() {
    at_ = end_ = nullptr;
    run_ = num_runs_ = 0;
  }
  // A piece of them, called at even distances.
  void Fetch() {
    for (int left = lines_; left > 0;) {
      if (at_ >= end_ && !NextRun()) return;
      const auto in_run = (end_ - at_ + kLine - 1) / kLine;
      const int count = left < in_run ? left : static_cast<int>(in_run);
      const auto* const at = reinterpret_cast<const char*>(at_);
      for (int i = 0; i < count; ++i) _mm_prefetch(at + i * kLine, _MM_HINT_T1);
      at_ += count * kLine;
      left -= count;
    }
  }
  void FetchRest() {
    while (at_ < end_ || run_ < num_runs_) Fetch();
  }

 private:
  static constexpr int kLine = 64;

  // About how often products with few rows of one KV head call Fetch: once per eight dimensions of
  // a pass over scores, and once per four columns of a pass over values; more rows, and narrow
  // vectors, take more passes, but products of 16-bit integers call it as often with any rows.
  static size_t Pieces(const KvPages& kv, const AttentionItem& item) {
    const auto heads_above = [&](uint32_t heads) { return item.heads > heads * item.kv_heads; };
#if defined(TANDEM_INTEGER_ATTENTION)
    if (kLanes < 16) return (kv.head_dim + kv.value_dim) / 4 + 1;
#endif
    if (kLanes < 16) {
      const size_t passes = heads_above(7) ? 8 : heads_above(6) ? 6 : heads_above(3) ? 4 : 2;
      return passes * (kv.head_dim + kv.value_dim) / 8 + 1;
    }
    const size_t passes = heads_above(6) ? 2 : 1;
    return passes * kv.head_dim / 8 + kv.value_dim / 4 + 1;
  }
  static PositionRange WholeBlocks(const KvPages& kv, PositionRange range) {
    const auto size = static_cast<int32_t>(kv.block_size);
    return {range.begin / size * size, (range.end + size - 1) / size * size};
  }
  bool NextRun() {
    if (run_ == num_runs_) return false;
    at_ = runs_[run_].begin;
    end_ = runs_[run_].end;
    ++run_;
    return true;
  }

  struct Run {
    const unsigned char* begin;
    const unsigned char* end;
  };
  Run runs_[2 * kTilePositions];
  int num_runs_ = 0;
  int run_ = 0;
  int lines_ = 0;
  const unsigned char* at_ = nullptr;
  const unsigned char* end_ = nullptr;
};

// Prefetches what is multiplied next where it lies, K or V of a KV head's tile, in the order in
// which it will be read, line by line: memory is kept busy, and what comes first is there first.
class StreamAhead {
 public:
  static constexpr bool kStreams = true;

  // K in columns. A block's lines belong to its groups in turn, so a group's next is as many lines
  // on as there are groups. (Of F16 in larger blocks all groups share a line; if only one is
  // wanted, some of its lines are not prefetched.)
  void StartK(const AttentionTask& task, const TileGroups& groups, uint32_t kv_head) {
    const KvPages& kv = task.params.pages;
    Start(kv, groups, kv_head, kv.k, task.k_row_bytes, kLine);
    step_ = kv.block_size / kGroupPositions * kLine;
    end_ = kv.block_size * task.k_row_bytes;
    columns_ = 0;
  }
  // With wide vectors a line of every row, then the next: products take columns of 32 values. With
  // narrow ones the machine's own prefetching helps, which follows one line after the other;
  // and rows of bytes are not whole lines.
  void StartV(const AttentionTask& task, const TileGroups& groups, uint32_t kv_head) {
    const KvPages& kv = task.params.pages;
    const size_t rows = kGroupPositions * task.v_row_bytes;
    Start(kv, groups, kv_head, kv.v, task.v_row_bytes, rows);
    const bool lines = kLanes == 16 && task.v_row_bytes % kLine == 0;
    step_ = lines ? task.v_row_bytes : kLine;
    end_ = rows;
    columns_ = lines ? task.v_row_bytes - kLine : 0;
  }
  void Clear() { at_ = end_ = 0; }
  // The next line of each group. Inlined, as a call would take the registers of loops around it.
  __attribute__((always_inline)) void Fetch() {
    if (at_ >= end_) return;
    for (int g = 0; g < kGroups; ++g) _mm_prefetch(groups_[g] + at_, _MM_HINT_T0);
    at_ += step_;
    if (at_ < end_ || columns_ == 0) return;
    columns_ -= kLine;
    at_ -= step_ * kGroupPositions - kLine;
    end_ += kLine;
  }
  void FetchRest() {
    while (at_ < end_) Fetch();
  }

 private:
  static constexpr size_t kLine = 64;

  void Start(const KvPages& kv, const TileGroups& groups, uint32_t kv_head, const void* pages,
             size_t row_bytes, size_t group_bytes) {
    for (int g = 0; g < kGroups; ++g) {
      groups_[g] = static_cast<const char*>(pages) + groups.BlockRow(kv, kv_head, g) * row_bytes +
                   groups.in_block[g] * group_bytes;
    }
    at_ = 0;
  }

  const char* groups_[kGroups];
  size_t at_ = 0;       // from the beginnings of groups
  size_t step_ = 0;     // to the next line
  size_t end_ = 0;      // of lines
  size_t columns_ = 0;  // bytes of rows behind this line of them
};

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_AHEAD_H_
