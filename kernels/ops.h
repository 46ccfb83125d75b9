// The parameters of every op: raw pointers, shapes and sizes; no tensors, no protos, no ownership.
//
// Activations are float32. Pointers point into the backend's own memory (Backend::Allocate) unless
// said otherwise, and must stay valid until WAIT. Rows are dense unless a stride (in elements) is
// given. T = tokens of the step, S = sequences.
#ifndef TANDEM_KERNELS_OPS_H_
#define TANDEM_KERNELS_OPS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"

namespace tandem::kernels {

// A weight as the backend holds it (Backend::PlaceWeight). On the CPU `data` points into the mapped
// file. The matrix has `rows` x `cols` values; inputs cover only columns [col_begin, col_begin +
// col_count): the rest belongs to another rank (a row-parallel cut inside a quantised block) and
// counts as multiplied by zero.
struct Weight {
  tensor::Type type = tensor::Type::kF32;
  const void* data = nullptr;
  uint32_t rows = 0;
  uint32_t cols = 0;
  uint64_t row_stride_bytes = 0;
  uint32_t col_begin = 0;
  uint32_t col_count = 0;
  // More than one for experts: matrices of the same shape, one behind the other.
  uint32_t count = 1;
  uint64_t matrix_stride_bytes = 0;
};

// out[t] = scale * table[ids[t] - vocab_begin], or zeros where the id lies outside this rank's
// rows.
struct EmbedParams {
  const int32_t* ids;  // (T)
  uint32_t tokens;
  Weight table;          // (vocabulary slice, hidden)
  uint32_t vocab_begin;  // first id of the slice
  float scale;
  float* out;  // (T, hidden)
};

// If add: residual += add. Then out = residual / rms(residual) * weight. `out` may equal `residual`
// when add is null. Per-head norms use rows = T * heads, dim = head_dim.
struct RmsNormParams {
  float* residual;      // (rows, dim)
  const float* add;     // (rows, dim) or null
  const float* weight;  // (dim)
  float epsilon;
  uint32_t rows;
  uint32_t dim;
  float* out;               // (rows, dim), rows out_stride apart
  uint32_t out_stride = 0;  // 0: dim
};

// As RmsNorm, with the mean taken off first: out = (residual - mean) / deviation * weight + bias.
struct LayerNormParams {
  float* residual;      // (rows, dim)
  const float* add;     // (rows, dim) or null
  const float* weight;  // (dim)
  const float* bias;    // (dim) or null
  float epsilon;
  uint32_t rows;
  uint32_t dim;
  float* out;  // (rows, dim)
};

// y = x W^T (+ bias).
struct Projection {
  Weight weight;      // (n, cols)
  const float* bias;  // (n) or null
  float* y;           // (T, n), rows y_stride apart
  uint32_t y_stride;
};

inline constexpr uint32_t kMaxProjections = 3;

// Up to three projections of one input: QKV, or gate and up, as merged column-parallel matrices
// whose parts may have types of their own. All weights have the same cols, col_begin and col_count.
// On the CPU a row's result does not depend on other rows; on CUDA that holds up to 8 tokens, and
// for the kernels of larger batches only to their rounding.
struct MatMulParams {
  const float* x;  // (T, col_count), rows x_stride apart
  uint32_t tokens;
  uint32_t x_stride;
  uint32_t num_projections;
  std::array<Projection, kMaxProjections> projections;
};

// Which experts of a mixture a token goes to, and with what weight: scores are the softmax or the
// sigmoid of the logits; the top_k experts with the largest score + selection_bias are taken, one
// argmax after the other, the lowest id on a tie; weights are their scores (without the bias),
// divided by their sum if `normalize` (0 where that is 0), times `scale`. With groups (DeepSeek-V3,
// arXiv:2412.19437, section 2.1.2) only experts of the groups_kept groups whose group_top best
// biased scores have the largest sums can be taken.
inline constexpr uint32_t kMaxExpertGroups = 64;

struct RouteParams {
  const float* logits;  // (T, experts)
  uint32_t tokens;
  uint32_t experts;
  uint32_t top_k;
  bool sigmoid;
  bool normalize;
  float scale;
  const float* selection_bias;  // (experts) or null
  uint32_t groups;              // divides experts; 1: no groups
  uint32_t groups_kept;
  uint32_t group_top;
  int32_t* ids;    // (T, top_k), in the order of choice
  float* weights;  // (T, top_k)
};

// One matrix per expert, of one type and shape, expert_stride_bytes apart.
struct ExpertProjection {
  Weight weight;                 // of the first expert: (n, cols)
  uint64_t expert_stride_bytes;  // to the next one
  const float* bias;             // (num_experts, n), experts bias_stride apart; or null
  uint32_t bias_stride;
  float* y;
};

// Grouped products with the experts that RouteParams chose. Up: y[t * top_k + j] = W[ids[t, j]]
// x[t] (+ bias); rows whose expert is another rank's are left as they are. Down (weights given):
// y[t] = sum over j, in ascending order of expert id, of weights[t, j] * (W[ids[t, j]] x[t * top_k
// + j] (+ bias)), zeros where no expert is this rank's. On the CPU a row's result does not
// depend on other tokens.
struct ExpertMatMulParams {
  const float* x;  // up: (T, col_count); down: (T * top_k, col_count); rows x_stride apart
  uint32_t tokens;
  uint32_t x_stride;
  uint32_t top_k;
  const int32_t* ids;     // (T, top_k), of all experts
  const float* weights;   // (T, top_k): down; null: up
  uint32_t expert_begin;  // the rank's experts: [expert_begin, expert_begin + num_experts)
  uint32_t num_experts;
  uint32_t num_projections;  // up: 1 or 2 (gate and up); down: 1
  std::array<ExpertProjection, 2> projections;
};

// A product per head, as MLA's absorption needs it. The weight has heads * rows_per_head rows; of
// each head's, rows [row_begin, row_begin + row_count) are used. Plain: y[t, h, j] = sum over c of
// W[h, row_begin + j, c] * x[t, h, c]. Transposed: y[t, h, c] = sum over j of W[h, row_begin + j,
// c] * x[t, h, j].
struct HeadMatMulParams {
  const float* x;
  uint32_t tokens;
  uint32_t heads;
  uint32_t x_token_stride;
  uint32_t x_head_stride;
  Weight weight;
  uint32_t rows_per_head;
  uint32_t row_begin;
  uint32_t row_count;
  bool transposed;
  float* y;
  uint32_t y_token_stride;
  uint32_t y_head_stride;
};

// The pages of one layer: K is (num_blocks, kv_heads, block_size, head_dim), V the same with
// value_dim. F32, F16, BF16, or Q8_0 where both sizes are multiples of 32. With `latent` there is
// no V: a V row is the first value_dim values of the K row (MLA, arXiv:2405.04434, section 2.1).
struct KvPages {
  tensor::Type type = tensor::Type::kF16;
  void* k = nullptr;
  void* v = nullptr;
  uint32_t num_blocks = 0;
  uint32_t block_size = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t value_dim = 0;
  bool latent = false;  // v is null
};

// Rotates dims [rotary_begin, rotary_begin + rotary_dims) of every head of q and k in place by
// their positions, then writes k and v to the pages: token t goes to slot slots[t] = block *
// block_size + offset; a slot of -1 writes nowhere.
struct RopeWriteKvParams {
  float* q;        // (T, heads, head_dim)
  float* k;        // (T, kv_heads, head_dim)
  const float* v;  // (T, kv_heads, value_dim); null where pages are latent
  uint32_t tokens;
  uint32_t heads;
  const int32_t* positions;  // (T)
  const int32_t* slots;      // (T)
  const float* inv_freq;     // (rotary_dims / 2)
  uint32_t rotary_begin;
  uint32_t rotary_dims;  // 0: nothing rotates
  bool halves;           // pairs (i, i + rotary_dims / 2) rather than (2i, 2i + 1)
  float magnitude;       // multiplies cos and sin
  KvPages pages;
};

// Causal attention of a varlen batch over paged K and V. Sequence s has query rows
// [query_offsets[s], query_offsets[s+1]), the last of which stands at position context_lens[s] - 1.
// Example: lengths 2, 1 -> offsets 0, 2, 3. A sequence of context length 0 is padding: nothing of
// its pages or block table is read, and its rows get zeros. On the CPU softmax state is built in
// tiles of 64 positions counted from position 0, merged in order, so that a row's bits depend on
// its own context alone; on a GPU the cut depends on the batch.
struct AttentionParams {
  const float* q;  // (T, heads, head_dim)
  uint32_t tokens;
  uint32_t num_seqs;
  const int32_t* query_offsets;  // (S + 1)
  const int32_t* context_lens;   // (S), this step's tokens included
  const int32_t* block_tables;   // (S, table_stride)
  uint32_t table_stride;
  KvPages pages;
  uint32_t heads;          // query heads of this rank
  uint32_t first_head;     // global index of the first of them
  uint32_t heads_per_kv;   // query heads per KV head, globally
  uint32_t first_kv_head;  // global index of pages' KV head 0
  float scale;
  float softcap;             // 0: none; else a score s becomes softcap * tanh(s / softcap)
  const float* sinks;        // (heads) or null: a score that takes weight but has no value
  uint32_t window;           // 0: all positions; else position p sees (p - window, p]
  uint32_t max_query_len;    // largest query length of the batch, for scratch and splits
  uint32_t max_context_len;  // largest context length
  float* out;                // (T, heads, value_dim)
};

// Activation functions: silu(x) = x sigmoid(x); GELU in its tanh form; and gpt-oss's gate, clamped:
// with g = min(gate, 7) and u = up within +-7, g sigmoid(1.702 g) (u + 1).
enum class Activation { kSilu, kGeluTanh, kClampedSwiGlu };

// out = f(gate) * up, or f(gate) where up is null (not for kClampedSwiGlu); `out` may equal `gate`.
struct ActivateParams {
  Activation function;
  const float* gate;
  const float* up;
  uint32_t rows;
  uint32_t cols;
  float* out;
};

// y[r] += x[r], times sigmoid(gate[r]) where there is a gate.
struct AddRowsParams {
  float* y;           // (rows, dim)
  const float* x;     // (rows, dim)
  const float* gate;  // (rows) or null
  uint32_t rows;
  uint32_t dim;
};

// Copies rows of `dim` values between arrays of different strides.
struct CopyRowsParams {
  const float* x;
  uint32_t x_stride;
  uint32_t rows;
  uint32_t dim;
  float* y;
  uint32_t y_stride;
};

// x = cap * tanh(x / cap), in place.
struct SoftCapParams {
  float* x;
  size_t count;
  float cap;
};

// out[i] = src[rows[i]].
struct GatherRowsParams {
  const float* src;     // (any, dim)
  const int32_t* rows;  // (count)
  uint32_t count;
  uint32_t dim;
  float* out;  // (count, dim)
};

// Puts gathered vocabulary slices side by side: out[row, starts[r] + c] = gathered[r, row, c] for c
// < starts[r+1] - starts[r].
struct UnshardLogitsParams {
  const float* gathered;   // (ranks, rows, slice_max)
  const uint32_t* starts;  // (ranks + 1), host memory, read while encoding
  uint32_t ranks;
  uint32_t rows;
  uint32_t slice_max;
  float* out;  // (rows, vocab) with vocab = starts[ranks]
};

// One row's wishes. Order: temperature, min_p, top_k, top_p. Temperature 0 takes the lowest id of
// the largest logit.
struct SamplingRow {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;  // <= 0: off
  uint64_t seed = 0;
  uint64_t position = 0;  // of the token that is drawn; with seed the whole of the random counter
  int32_t logits_row = 0;
  int32_t banned_begin = 0;  // ids banned for this row: banned[banned_begin, banned_end)
  int32_t banned_end = 0;
  int32_t reserved = 0;
};

struct SampleParams {
  const float* logits;  // (any, vocab)
  uint32_t vocab;
  const SamplingRow* rows;  // (count)
  uint32_t count;
  const int32_t* banned;  // ids, may be null when no row bans any
  int32_t* out;           // (count)
};

inline constexpr uint32_t kMaxTopLogProbs = 20;

// One row's wishes. Its results stand in the order: the sampled id, ids[ids_begin, ids_end), the
// top_n ids of the largest logits (largest first, the lower id on a tie).
struct LogProbsRow {
  int32_t logits_row = 0;
  int32_t sample = -1;  // the sampled id is sampled[sample]; -1: not wanted
  int32_t ids_begin = 0;
  int32_t ids_end = 0;
  uint32_t top_n = 0;      // at most kMaxTopLogProbs and vocab
  uint32_t out_begin = 0;  // index of the first result
};

// Log-softmax of whole rows, read at some ids. rank = 1 + how many logits of the row are strictly
// larger. A NaN counts as -inf.
struct LogProbsParams {
  const float* logits;  // (any, vocab)
  uint32_t vocab;
  const LogProbsRow* rows;  // (count)
  uint32_t count;
  const int32_t* ids;      // all in [0, vocab); may be null when no row names any
  const int32_t* sampled;  // what Sample wrote; may be null when no row asks for it
  uint32_t out_count;      // results of all rows
  int32_t* out_ids;        // (out_count)
  float* out_logprobs;     // (out_count)
  int32_t* out_ranks;      // (out_count)
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_H_
