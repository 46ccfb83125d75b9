// Rows of KV pages in every type that pages may have, a vector at a time. Included by files that
// are compiled once per instruction set.
//
// A struct per type: Load gives kLanes values from value `at` on, a multiple of kLanes; LoadPartial
// the first n of them and zeros, reading nothing beyond. Values are those of tensor::Dequantize,
// and rows written those of reference::StorePageRow, bit for bit.
#ifndef TANDEM_KERNELS_CPU_PAGE_ROWS_H_
#define TANDEM_KERNELS_CPU_PAGE_ROWS_H_

#include "common/tensor/blocks_of_32.h"
#include "common/tensor/type.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

struct F32Rows {
  static constexpr size_t kValueBytes = sizeof(float);

  static Vec Load(const void* row, uint32_t at) {
    return TANDEM_CPU_ISA::Load(static_cast<const float*>(row) + at);
  }
  static Vec LoadPartial(const void* row, uint32_t at, int n) {
    return TANDEM_CPU_ISA::LoadPartial(static_cast<const float*>(row) + at, n);
  }
  static void Store(void* row, const float* values, uint32_t dim) {
    __builtin_memcpy(row, values, dim * sizeof(float));
  }
};

// F16 and BF16.
template <Vec (*kLoad)(const uint16_t*), void (*kStore)(uint16_t*, Vec)>
struct HalfRows {
  static constexpr size_t kValueBytes = sizeof(uint16_t);

  static Vec Load(const void* row, uint32_t at) {
    return kLoad(static_cast<const uint16_t*>(row) + at);
  }
  static Vec LoadPartial(const void* row, uint32_t at, int n) {
    uint16_t lanes[kLanes] = {};
    __builtin_memcpy(lanes, static_cast<const uint16_t*>(row) + at,
                     static_cast<size_t>(n) * sizeof(uint16_t));
    return kLoad(lanes);
  }
  static void Store(void* row, const float* values, uint32_t dim) {
    uint16_t* const out = static_cast<uint16_t*>(row);
    uint32_t i = 0;
    for (; i + kLanes <= dim; i += kLanes) kStore(out + i, TANDEM_CPU_ISA::Load(values + i));
    if (i == dim) return;
    const auto n = static_cast<int>(dim - i);
    uint16_t lanes[kLanes];
    kStore(lanes, TANDEM_CPU_ISA::LoadPartial(values + i, n));
    __builtin_memcpy(out + i, lanes, static_cast<size_t>(n) * sizeof(uint16_t));
  }
};
using F16Rows = HalfRows<LoadHalf, StoreHalf>;
using Bf16Rows = HalfRows<LoadBf16, StoreBf16>;

// Rows are whole blocks.
struct Q8_0Rows {
  using Block = tensor::BlockQ8_0;
  static constexpr int kVecs = Block::kValues / kLanes;

  static Vec Load(const void* row, uint32_t at) {
    const Block& block = static_cast<const Block*>(row)[at / Block::kValues];
    return LoadInt8(block.qs + at % Block::kValues) * Set1(HalfToFloat(block.d));
  }
  static Vec LoadPartial(const void* row, uint32_t at, int) { return Load(row, at); }

  static void Store(void* row, const float* values, uint32_t dim) {
    Block* const blocks = static_cast<Block*>(row);
    for (uint32_t b = 0; b < dim / Block::kValues; ++b)
      StoreBlock(values + b * Block::kValues, &blocks[b]);
  }

 private:
  static void StoreBlock(const float* values, Block* block) {
    Vec v[kVecs];
    Vec largest = Zero(), poison = Zero();
    for (int i = 0; i < kVecs; ++i) {
      v[i] = TANDEM_CPU_ISA::Load(values + i * kLanes);
      largest = Max(largest, Max(v[i], Zero() - v[i]));
      poison = Fma(v[i], Zero(), poison);  // NaN once a value is not finite
    }
    block->d = FloatToHalf(ReduceMax(largest) / 127.0f + ReduceAdd(poison));
    const float scale = HalfToFloat(block->d);
    const Vec limit = Set1(127.0f);
    // Neither zero, nor infinite, nor NaN.
    const bool has_values = scale > 0 && scale < __builtin_inff();
    for (int i = 0; i < kVecs; ++i) {
      const Vec steps = has_values ? v[i] / Set1(scale) : Zero();
      StoreInt8(block->qs + i * kLanes, Max(Zero() - limit, Min(limit, steps)));
    }
  }
};

// Calls visit with the struct of a page type, which PrepareAttention and reference::StorePageRow
// know to be one of these.
template <typename Visit>
void WithRows(tensor::Type type, Visit visit) {
  switch (type) {
    case tensor::Type::kF32:
      return visit(F32Rows());
    case tensor::Type::kBF16:
      return visit(Bf16Rows());
    case tensor::Type::kQ8_0:
      return visit(Q8_0Rows());
    default:
      return visit(F16Rows());
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_PAGE_ROWS_H_
