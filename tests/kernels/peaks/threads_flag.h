// --threads=N, which Google Benchmark does not know.
#ifndef TANDEM_TESTS_KERNELS_PEAKS_THREADS_FLAG_H_
#define TANDEM_TESTS_KERNELS_PEAKS_THREADS_FLAG_H_

namespace tandem::kernels::peaks {

// Takes the flag out of the arguments, to be called before benchmark::Initialize. 1 to 1024, or 0
// where there is no such flag. Any other value is bad usage: an error message and exit code 2.
int TakeThreads(int* argc, char** argv);

}  // namespace tandem::kernels::peaks

#endif  // TANDEM_TESTS_KERNELS_PEAKS_THREADS_FLAG_H_
