// Where the rows of a tile lie in the pages, and reading them ahead. Included by files that are
// compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_PAGES_H_
#define TANDEM_KERNELS_CPU_ATTENTION_PAGES_H_

#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Calls visit(pos, row, count) for each run of positions of [begin, end) whose rows lie one after
// the other.
template <typename Visit>
inline void ForRuns(const KvPages& kv, const int32_t* table, uint32_t kv_head, PositionRange range,
                    const void* pages, size_t row_bytes, Visit visit) {
  if (range.begin >= range.end) return;
  const auto block_size = static_cast<int32_t>(kv.block_size);
  table += range.begin / block_size;
  int32_t offset = range.begin % block_size;
  for (int32_t pos = range.begin; pos < range.end; ++table, offset = 0) {
    const size_t first = (static_cast<size_t>(*table) * kv.kv_heads + kv_head) * kv.block_size +
                         static_cast<size_t>(offset);
    int32_t count = block_size - offset;
    if (count > range.end - pos) count = range.end - pos;
    visit(pos, static_cast<const unsigned char*>(pages) + first * row_bytes, count);
    pos += count;
  }
}

// The addresses of the rows of a tile that starts at `tile`. Positions outside `wanted` get the
// address of its first row, so that every row can be read: their scores are masked, their values
// not used. REQUIRES: `wanted` is not empty.
inline void FindRows(const KvPages& kv, const int32_t* table, uint32_t kv_head, int32_t tile,
                     PositionRange wanted, const void* pages, size_t row_bytes,
                     const void* rows[kTilePositions]) {
  ForRuns(kv, table, kv_head, wanted, pages, row_bytes,
          [=](int32_t pos, const unsigned char* row, int32_t count) {
            for (int32_t i = pos - tile; i < pos - tile + count; ++i, row += row_bytes)
              rows[i] = row;
          });
  for (int32_t i = 0; i < wanted.begin - tile; ++i) rows[i] = rows[wanted.begin - tile];
  for (int32_t i = wanted.end - tile; i < kTilePositions; ++i) rows[i] = rows[wanted.begin - tile];
}

// Prefetches the K and V of the next tile while this one is computed. Pages are scattered, so the
// machine cannot guess them.
class ReadAhead {
 public:
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
  // a pass over scores, and once per four columns of a pass over values; more than six rows, and
  // narrow vectors, take more passes.
  static size_t Pieces(const KvPages& kv, const AttentionItem& item) {
    const size_t passes = item.heads > 6 * item.kv_heads ? 2 : 1;
    if (kLanes < 16) return passes * (kv.head_dim + kv.value_dim) / 2 + 1;
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

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_PAGES_H_
