// Attention: causal attention of a varlen batch over paged K and V.
#ifndef TANDEM_KERNELS_OPS_ATTENTION_H_
#define TANDEM_KERNELS_OPS_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"
#include "kernels/ops/kv_pages.h"

namespace tandem::kernels {

// Causal attention of a varlen batch over paged K and V. Sequence s has query rows
// [query_offsets[s], query_offsets[s+1]), the last of which is at position context_lens[s] - 1.
// Example: lengths 2, 1 -> offsets 0, 2, 3. Its block table is row table_rows[s] of block_tables. A
// sequence of context length 0 is padding: its pages and block table are not read, and its rows are
// zeros. On the CPU softmax state is built in tiles of 64 positions counted from position 0, merged
// in order, so that a row's bits depend only on its own context. On a GPU they depend on its
// context and on how many query rows its sequence has in the step; not on other sequences.
struct AttentionParams {
  static constexpr std::string_view kName = "Attention";

  const float* q;  // (T, heads, head_dim)
  uint32_t tokens;
  uint32_t num_seqs;
  const int32_t* query_offsets;  // (S + 1)
  const int32_t* context_lens;   // (S), this step's tokens included
  const int32_t* block_tables;   // (any, table_stride)
  const int32_t* table_rows;     // (S)
  uint32_t table_stride;
  KvPages pages;
  uint32_t heads;          // query heads of this rank
  uint32_t first_head;     // global index of the first of them
  uint32_t heads_per_kv;   // query heads per KV head, globally
  uint32_t first_kv_head;  // global index of pages' KV head 0
  float scale;
  float softcap;             // 0: none; else a score s becomes softcap * tanh(s / softcap)
  const float* sinks;        // (heads) or null: a score that takes weight but has no value
  uint32_t window;           // 0: all positions; else position p attends to (p - window, p]
  bool chunked = false;      // with a window: to [p - p mod window, p]
  uint32_t max_query_len;    // largest query length of the batch, for scratch and grids
  uint32_t max_context_len;  // largest context length
  float* out;                // (T, heads, value_dim)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("q", p.q, In(p.tokens, size_t{p.heads} * p.pages.head_dim));
    visit("query_offsets", p.query_offsets, In(p.num_seqs + 1));
    visit("context_lens", p.context_lens, In(p.num_seqs));
    visit("block_tables", p.block_tables, In(0, p.table_stride));
    visit("table_rows", p.table_rows, In(p.num_seqs));
    KvPages::ForEachPointer(p.pages, Access::kIn, visit);
    visit("sinks", p.sinks, In(p.heads).Optional());
    visit("out", p.out, Out(p.tokens, size_t{p.heads} * p.pages.value_dim));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_ATTENTION_H_
