// Reading memory as fast as the machine can: the roof of decode.
#ifndef TANDEM_TESTS_KERNELS_PEAKS_MEMORY_READING_H_
#define TANDEM_TESTS_KERNELS_PEAKS_MEMORY_READING_H_

namespace tandem::kernels::peaks {

// Registers ReadMemory with Google Benchmark: `threads` threads that each read their part of 512
// MiB, in loops with and without huge pages and software prefetch. The best counts; which one that
// is depends on the machine.
void RegisterReadMemory(int threads);

}  // namespace tandem::kernels::peaks

#endif  // TANDEM_TESTS_KERNELS_PEAKS_MEMORY_READING_H_
