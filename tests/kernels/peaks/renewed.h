// What keeps a compiler from computing less than a loop says.
#ifndef TANDEM_TESTS_KERNELS_PEAKS_RENEWED_H_
#define TANDEM_TESTS_KERNELS_PEAKS_RENEWED_H_

namespace tandem::kernels::peaks {

// The same vector, which the compiler must take for another one: it neither moves what uses it out
// of a loop, nor computes two equal ones once.
template <typename Vector>
[[gnu::always_inline]] inline Vector Renewed(Vector vector) {
  asm volatile("" : "+v"(vector));
  return vector;
}

}  // namespace tandem::kernels::peaks

#endif  // TANDEM_TESTS_KERNELS_PEAKS_RENEWED_H_
