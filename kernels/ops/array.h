// The arrays that an op reads and writes, listed separately from its scalars, so that code for all
// ops (recording, checking, translating addresses, counting) is written once.
//
// Every op's parameters have a member template ForEachPointer(params, visit), which calls, for each
// pointer,
//
//   visit("name", pointer, Array)        T*: elements of T; void*: elements of Array::type
//   visit("name", weight)                a Weight returned by Backend::PlaceWeight
//
// The pointers are lvalues of the parameters given: a visitor of non-const parameters may replace
// them.
#ifndef TANDEM_KERNELS_OPS_ARRAY_H_
#define TANDEM_KERNELS_OPS_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/tensor/type.h"

namespace tandem::kernels {

// kScratch: written, of any contents afterwards. kHost: host memory, read while encoding.
enum class Access { kIn, kOut, kInOut, kScratch, kHost };

// `parts` times `rows` rows of `cols` elements. Strides are in elements.
struct Array {
  Access access = Access::kIn;
  size_t rows = 1;  // 0: given by other arrays of the op; only inputs
  size_t cols = 0;
  size_t stride = 0;
  size_t parts = 1;
  size_t part_stride = 0;
  tensor::Type type = tensor::Type::kF32;  // of a void*
  bool optional = false;                   // the pointer may be null

  bool written() const { return access == Access::kOut || access == Access::kInOut; }

  // Elements from the first to the last, gaps between rows included.
  size_t span() const {
    if (rows == 0 || cols == 0 || parts == 0) return 0;
    return (parts - 1) * part_stride + (rows - 1) * stride + cols;
  }
  // The same in bytes, for the accompanying pointer.
  template <class T>
  size_t bytes(const T*) const {
    if constexpr (std::is_void_v<T>) {
      return tensor::RowBytes(type, span());
    } else {
      return span() * sizeof(T);
    }
  }

  Array Optional() const {
    Array array = *this;
    array.optional = true;
    return array;
  }
  // Repeated, `stride` elements apart.
  Array Times(size_t count, size_t stride_between) const {
    Array array = *this;
    array.parts = count;
    array.part_stride = stride_between;
    return array;
  }
};

inline Array Dense(Access access, size_t rows, size_t cols) {
  return {.access = access, .rows = rows, .cols = cols, .stride = cols};
}
inline Array In(size_t count) { return Dense(Access::kIn, 1, count); }
inline Array In(size_t rows, size_t cols) { return Dense(Access::kIn, rows, cols); }
inline Array Out(size_t count) { return Dense(Access::kOut, 1, count); }
inline Array Out(size_t rows, size_t cols) { return Dense(Access::kOut, rows, cols); }
inline Array InOut(size_t rows, size_t cols) { return Dense(Access::kInOut, rows, cols); }
// Rows `stride` elements apart.
inline Array Strided(Access access, size_t rows, size_t cols, size_t stride) {
  return {.access = access, .rows = rows, .cols = cols, .stride = stride};
}

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_ARRAY_H_
