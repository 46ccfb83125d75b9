#include "worker/model/attention.h"

namespace tandem::worker {

kernels::RopeWriteKvParams AttentionBlock::WriteParams(const Batch& batch,
                                                       const kernels::KvPages& pages, float* q,
                                                       float* k, const float* v) const {
  const model::ModelSpec& spec = parts_.spec;
  const model::RopeSpec* const rope = parts_.rope.spec;
  model::TemperatureSpec temperature = spec.temperature.value_or(model::TemperatureSpec{});
  if (temperature.without_rope_only && rope != nullptr) temperature.scale = 0.0f;
  return {.q = q,
          .k = k,
          .v = v,
          .tokens = batch.tokens,
          .heads = parts_.plan.heads.size(),
          .positions = batch.positions,
          .slots = batch.groups[parts_.group].slots,
          .inv_freq = parts_.rope.inv_freq,
          .rotary_begin = spec.mla.has_value() ? spec.mla->kv_rank : 0,
          .rotary_dims = rope == nullptr ? 0 : rope->rotary_dims,
          .halves = rope != nullptr && rope->pairing == model::RopePairing::kHalves,
          .magnitude = rope == nullptr ? 1.0f : rope->magnitude,
          .pages = pages,
          .norm_epsilon = rope != nullptr && spec.norms_after_rope ? spec.norm_epsilon : 0.0f,
          .temperature_scale = temperature.scale,
          .temperature_length = temperature.length,
          .temperature_offset = temperature.offset};
}

kernels::AttentionParams AttentionBlock::AttendParams(const Batch& batch,
                                                      const kernels::KvPages& pages, const float* q,
                                                      float* out) const {
  const model::ModelSpec& spec = parts_.spec;
  const model::ShardPlan& plan = parts_.plan;
  const GroupBatch& group = batch.groups[parts_.group];
  return {.q = q,
          .tokens = batch.tokens,
          .num_seqs = batch.num_seqs,
          .query_offsets = batch.query_offsets,
          .context_lens = batch.context_lens,
          .block_tables = group.block_tables,
          .table_rows = batch.table_rows,
          .table_stride = batch.table_stride,
          .pages = pages,
          .heads = plan.heads.size(),
          .first_head = plan.heads.begin,
          .heads_per_kv = spec.num_heads / parts_.heads.num_kv_heads,
          .first_kv_head = KvHeadRange(spec, plan, parts_.heads).begin,
          .scale = spec.attention_scale,
          .softcap = spec.attention_softcap,
          .sinks = parts_.weights.Vector(model::Role::kAttnSinks, parts_.layer),
          .window = parts_.window,
          .chunked = parts_.chunked,
          .max_query_len = batch.max_query_len,
          .max_context_len = batch.max_context_len,
          .out = out};
}

}  // namespace tandem::worker
