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
  // The rows that come next; `range` within one tile.
  void Start(const AttentionTask& task, const int32_t* table, uint32_t kv_head,
             PositionRange range) {
    Clear();
    const KvPages& kv = task.params.pages;
    size_t bytes = 0;
    const auto add = [&](const void* pages, size_t row_bytes) {
      ForRuns(kv, table, kv_head, range, pages, row_bytes,
              [&](int32_t, const unsigned char* row, int32_t count) {
                const size_t size = static_cast<size_t>(count) * row_bytes;
                runs_[num_runs_++] = {row, row + size};
                bytes += size;
              });
    };
    add(kv.k, task.k_row_bytes);
    if (!kv.latent) add(kv.v, task.v_row_bytes);
    lines_ = static_cast<int>(bytes / (kLine * kPieces)) + 1;
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
  static constexpr int kPieces = 28;  // calls of Fetch while a tile meets few query rows

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
