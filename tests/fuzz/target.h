// A fuzz target: a function of bytes that come from outside. Each NAME_fuzz.cc defines these two;
// corpus_test.cc drives them, and under `./dev fuzz` libFuzzer does (libfuzzer_main.cc).
#ifndef TANDEM_TESTS_FUZZ_TARGET_H_
#define TANDEM_TESTS_FUZZ_TARGET_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::fuzz {

using Bytes = std::vector<uint8_t>;

// Aborts on what must not be. True where the input is sound. A sanitizer sees the first byte read
// before or after `input`.
bool Take(std::span<const uint8_t> input);

// Sound inputs to begin with.
std::vector<Bytes> Seeds();

}  // namespace tandem::fuzz

#endif  // TANDEM_TESTS_FUZZ_TARGET_H_
