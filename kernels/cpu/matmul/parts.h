// One projection as its kernel takes it, and how it is cut into tasks.
#ifndef TANDEM_KERNELS_CPU_MATMUL_PARTS_H_
#define TANDEM_KERNELS_CPU_MATMUL_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cpu/matmul/conversion.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/window.h"
#include "kernels/host/task.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

// Rows of a task that unpacks weights for many tokens.
inline constexpr uint32_t kManyRows = 64;

struct Part {
  Product product;  // if x is in the shared scratch, that is null
  void (*run)(const Product&, const ProductRange&, std::byte* scratch);
  size_t x_at;         // bytes from the scratch's start
  size_t x_row_bytes;  // from a row of x to the next
  size_t thread_bytes;
};

// `conversion`: of the activations, whose quantised columns are `all`.
Part MakePart(const Projection& projection, const MatMulKernels& kernels,
              const Conversion& conversion, const Window& all);

inline Product ProductOf(const Part& part, const host::TaskContext& context) {
  Product product = part.product;
  if (product.x == nullptr) product.x = context.shared_scratch + part.x_at;
  return product;
}

inline void RunPart(const Part& part, const ProductRange& range, const host::TaskContext& context) {
  part.run(ProductOf(part, context), range, context.thread_scratch);
}

// The same to an array of the task's own: y[0] is of the range's first token and row.
inline void RunPartTo(float* y, size_t y_stride, const Part& part, const ProductRange& range,
                      const host::TaskContext& context) {
  Product product = ProductOf(part, context);
  product.x = static_cast<const std::byte*>(product.x) + range.token_begin * part.x_row_bytes;
  product.weights += range.row_begin * product.stride_bytes;
  product.rows -= range.row_begin;
  if (product.bias != nullptr) product.bias += range.row_begin;
  product.y = y;
  product.y_stride = y_stride;
  part.run(product, {0, range.row_end - range.row_begin, 0, range.token_end - range.token_begin},
           context.thread_scratch);
}

// Rows of a task with few tokens, a multiple of kRowAlign: it reads enough memory to be worth its
// start, and there are enough tasks to even out threads of unequal speed.
inline uint32_t FewRows(uint32_t rows, uint64_t row_bytes, uint32_t threads) {
  if (threads == 1) return RoundUp(rows, kRowAlign);
  constexpr uint64_t kLeast = uint64_t{64} << 10;
  constexpr uint64_t kMost = uint64_t{1} << 20;
  const uint64_t bytes = std::clamp(rows * row_bytes / (threads * 16), kLeast, kMost);
  return RoundUp(std::max<uint64_t>(bytes / std::max<uint64_t>(row_bytes, 1), 1), kRowAlign);
}

// Bytes of a row of the weight that a product reads.
inline uint64_t RowBytesRead(const Weight& weight) {
  return tensor::RowBytes(weight.type, WindowOf(weight).cols());
}

// Even parts of whole sets of tokens (3, 4 or 6), at most kMostTokensPerTask; few tokens are one
// part.
inline constexpr uint32_t kManyTokens = 256;
inline constexpr uint32_t kTokenAlign = 12;
inline constexpr uint32_t kMostTokensPerTask =
    (kManyTokens + kTokenAlign - 1) / kTokenAlign * kTokenAlign;
inline uint32_t TokensPerTask(uint32_t tokens) {
  if (tokens <= kFewTokens) return tokens;
  return RoundUp(CeilDiv(tokens, CeilDiv(tokens, kManyTokens)), kTokenAlign);
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_PARTS_H_
