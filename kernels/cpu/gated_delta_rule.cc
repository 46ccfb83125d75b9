// GatedDeltaRule, compiled once per instruction set. A task is kStateVectors vectors of columns of
// one head's state: columns do not depend on each other. Per token the state is read and written
// once: the pass that updates it for one token also gathers what it predicts for the next.
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {
namespace {

static_assert(kStateColumns % kLanes == 0);

// One head of a sequence's chunk.
struct Head {
  const GatedDeltaRuleParams& p;
  uint32_t head;
  uint32_t key_head;
  size_t begin;  // the chunk's first row
  int rows;
  float* state;         // (dim, dim)
  const float* loaded;  // with which it begins; may be `state`
  float* saved;
  int save_after;

  const float* Q(int row) const { return Qkv(row) + key_head * p.dim; }
  const float* K(int row) const { return Qkv(row) + (p.key_heads + key_head) * p.dim; }
  const float* V(int row) const { return Qkv(row) + (2 * p.key_heads + head) * p.dim; }
  float* Out(int row) const { return p.out + At(row) * p.dim; }
  // exp(rate softplus(x)), with softplus(x) = ln(1 + e^x).
  float Decay(int row) const {
    const float x = p.decay[At(row)] + p.decay_bias[head];
    const float softplus = x > 20.0f ? x : __builtin_log1pf(ExpOne(x));
    return ExpOne(p.decay_rate[head] * softplus);
  }
  float Write(int row) const { return 1.0f / (1.0f + ExpOne(-p.write[At(row)])); }

 private:
  const float* Qkv(int row) const {
    return p.qkv + (begin + static_cast<size_t>(row)) * p.channels();
  }
  size_t At(int row) const { return (begin + static_cast<size_t>(row)) * p.value_heads + head; }
};

// to = x times `scale` / sqrt(|x|^2 + epsilon).
void Normalize(const float* x, uint32_t dim, float epsilon, float scale, float* to) {
  Vec sums = Zero();
  uint32_t i = 0;
  for (; i + kLanes <= dim; i += kLanes) sums = Fma(Load(x + i), Load(x + i), sums);
  const int n = static_cast<int>(dim - i);
  const Vec tail = LoadPartial(x + i, n);
  const float squares = ReduceAdd(Fma(tail, tail, sums));
  const Vec factor = Set1(scale / __builtin_sqrtf(squares + epsilon));
  for (i = 0; i + kLanes <= dim; i += kLanes) Store(to + i, Load(x + i) * factor);
  StorePartial(to + i, tail * factor, n);
}

// kVecs vectors of columns, or one with fewer lanes.
template <int kVecs>
struct Columns {
  int lanes;  // of the last vector

  Vec Read(const float* from, int v) const {
    return kVecs > 1 || lanes == kLanes ? Load(from + v * kLanes) : LoadPartial(from, lanes);
  }
  void Save(float* to, int v, Vec x) const {
    if (kVecs > 1 || lanes == kLanes) return Store(to + v * kLanes, x);
    StorePartial(to, x, lanes);
  }
};

template <int kVecs>
void RunColumns(const Head& h, uint32_t column, Columns<kVecs> columns, float* scratch) {
  const uint32_t dim = h.p.dim;
  const float q_scale = 1.0f / __builtin_sqrtf(static_cast<float>(dim));
  float* const q = scratch;
  float* keys[2] = {scratch + dim, scratch + 2 * dim};
  float* const state = h.state + column;
  Vec predicted[kVecs];
  for (Vec& sum : predicted) sum = Zero();
  Normalize(h.K(0), dim, h.p.epsilon, 1.0f, keys[0]);
  for (uint32_t i = 0; i < dim; ++i) {
    const Vec k = Set1(keys[0][i]);
    for (int v = 0; v < kVecs; ++v)
      predicted[v] = Fma(k, columns.Read(state + i * size_t{dim}, v), predicted[v]);
  }
  for (int row = 0; row < h.rows; ++row) {
    const float* const k = keys[row % 2];
    float* const next = keys[(row + 1) % 2];
    const int following = row + 1 < h.rows ? row + 1 : row;  // after the last, not used
    Normalize(h.Q(row), dim, h.p.epsilon, q_scale, q);
    Normalize(h.K(following), dim, h.p.epsilon, 1.0f, next);
    const Vec decay = Set1(h.Decay(row)), write = Set1(h.Write(row));
    Vec delta[kVecs], sum[kVecs];
    for (int v = 0; v < kVecs; ++v) {
      delta[v] = write * (columns.Read(h.V(row) + column, v) - decay * predicted[v]);
      predicted[v] = sum[v] = Zero();
    }
    for (uint32_t i = 0; i < dim; ++i) {
      float* const cells = state + i * size_t{dim};
      const Vec ki = Set1(k[i]), qi = Set1(q[i]), next_ki = Set1(next[i]);
      for (int v = 0; v < kVecs; ++v) {
        const Vec cell = Fma(ki, delta[v], decay * columns.Read(cells, v));
        columns.Save(cells, v, cell);
        sum[v] = Fma(qi, cell, sum[v]);
        predicted[v] = Fma(next_ki, cell, predicted[v]);
      }
    }
    for (int v = 0; v < kVecs; ++v) columns.Save(h.Out(row) + column, v, sum[v]);
    if (row + 1 != h.save_after) continue;
    for (uint32_t i = 0; i < dim; ++i) {
      const size_t at = i * size_t{dim};
      for (int v = 0; v < kVecs; ++v) {
        columns.Save(h.saved + at + column, v, columns.Read(state + at, v));
      }
    }
  }
}

void Clear(float* to, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) to[i] = 0.0f;
}

// The state's columns before the chunk, if these are at another place.
void LoadColumns(const Head& h, uint32_t first, uint32_t count) {
  if (h.loaded == h.state) return;
  for (uint32_t row = 0; row < h.p.dim; ++row) {
    const size_t at = row * size_t{h.p.dim} + first;
    for (uint32_t i = 0; i < count; ++i) h.state[at + i] = h.loaded[at + i];
  }
}

}  // namespace

void RunDeltaRule(const GatedDeltaRuleParams& p, const host::TaskContext& context) {
  const uint32_t blocks = (p.dim + kStateColumns - 1) / kStateColumns;
  const uint32_t block = context.task % blocks, head = context.task / blocks % p.value_heads;
  const uint32_t seq = context.task / blocks / p.value_heads;
  const uint32_t first = block * kStateColumns;
  const uint32_t count = p.dim - first < kStateColumns ? p.dim - first : kStateColumns;
  const auto state_of = [&](const int32_t* slots) {
    return p.state + (static_cast<size_t>(slots[seq]) * p.value_heads + head) * p.dim * p.dim;
  };
  const int32_t context_len = p.batch.context_lens[seq];
  const Head h = {.p = p,
                  .head = head,
                  .key_head = p.strided ? head % p.key_heads : head / (p.value_heads / p.key_heads),
                  .begin = static_cast<size_t>(p.batch.query_offsets[seq]),
                  .rows = p.batch.query_offsets[seq + 1] - p.batch.query_offsets[seq],
                  .state = state_of(p.batch.slots),
                  .loaded = state_of(p.batch.load_slots),
                  .saved = state_of(p.batch.save_slots),
                  .save_after = p.batch.save_after[seq]};
  if (context_len == 0) {
    for (int row = 0; row < h.rows; ++row) Clear(h.Out(row) + first, count);
    return;
  }
  if (context_len == h.rows) {
    for (uint32_t i = 0; i < p.dim; ++i) Clear(h.state + i * size_t{p.dim} + first, count);
  } else {
    LoadColumns(h, first, count);
  }
  auto* const scratch = reinterpret_cast<float*>(context.thread_scratch);
  constexpr int kVecs = 4;
  uint32_t at = first;
  for (; at + kVecs * kLanes <= first + count; at += kVecs * kLanes) {
    RunColumns<kVecs>(h, at, {kLanes}, scratch);
  }
  for (; at < first + count; at += kLanes) {
    const uint32_t left = first + count - at;
    RunColumns<1>(h, at, {left < kLanes ? static_cast<int>(left) : kLanes}, scratch);
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
