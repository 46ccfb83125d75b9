// RopeWriteKv: rotary position embedding, and the write to the KV cache.
#ifndef TANDEM_KERNELS_OPS_ROPE_WRITE_KV_H_
#define TANDEM_KERNELS_OPS_ROPE_WRITE_KV_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"
#include "kernels/ops/kv_pages.h"

namespace tandem::kernels {

// Rotates dims [rotary_begin, rotary_begin + rotary_dims) of every head of q and k in place by
// their positions; divides every head of q and k by its root mean square, with norm_epsilon added
// to the square, if that is positive; multiplies q by its temperature, 1 + temperature_scale * ln(1
// + floor((position + temperature_offset) / temperature_length)); then writes k and v to the pages:
// token t goes to slot slots[t] = block * block_size + offset; -1 skips the write. With pages of no
// KV heads only q is rotated: layers that read another layer's cache.
struct RopeWriteKvParams {
  static constexpr std::string_view kName = "RopeWriteKv";

  float* q;        // (T, heads, head_dim)
  float* k;        // (T, kv_heads, head_dim)
  const float* v;  // (T, kv_heads, value_dim); null if pages are latent
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
  float norm_epsilon = 0.0f;       // 0: heads are not normed
  float temperature_scale = 0.0f;  // 0: q has no temperature
  uint32_t temperature_length = 1;
  uint32_t temperature_offset = 0;

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    const uint32_t kv_heads = p.pages.kv_heads;
    visit("q", p.q, InOut(p.tokens, size_t{p.heads} * p.pages.head_dim));
    visit("positions", p.positions, In(p.tokens));
    visit("slots", p.slots, In(p.tokens));
    if (p.rotary_dims > 0) visit("inv_freq", p.inv_freq, In(p.rotary_dims / 2));
    if (kv_heads == 0) return;
    visit("k", p.k, InOut(p.tokens, size_t{kv_heads} * p.pages.head_dim));
    if (!p.pages.latent) visit("v", p.v, In(p.tokens, size_t{kv_heads} * p.pages.value_dim));
    KvPages::ForEachPointer(p.pages, Access::kInOut, visit);
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_ROPE_WRITE_KV_H_
