// Embed: rows of the token table.
#ifndef TANDEM_KERNELS_OPS_EMBED_H_
#define TANDEM_KERNELS_OPS_EMBED_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"
#include "kernels/ops/weight.h"

namespace tandem::kernels {

// out[t] = scale * table[ids[t] - vocab_begin], or zeros if the id is outside this rank's rows.
struct EmbedParams {
  static constexpr std::string_view kName = "Embed";

  const int32_t* ids;  // (T)
  uint32_t tokens;
  Weight table;          // (vocabulary slice, hidden)
  uint32_t vocab_begin;  // first id of the slice
  float scale;
  float* out;  // (T, hidden)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("ids", p.ids, In(p.tokens));
    visit("table", p.table);
    visit("out", p.out, Out(p.tokens, p.table.col_count));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_EMBED_H_
