// Philox 4x32-10: random numbers as a function of a counter, so that a draw depends only on (seed,
// position). constexpr, so that device code can call it. Source: Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC11.
#ifndef TANDEM_KERNELS_HOST_PHILOX_H_
#define TANDEM_KERNELS_HOST_PHILOX_H_

#include <array>
#include <cstdint>

namespace tandem::kernels::host {

constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// What a random number is for: independent numbers of the same seed and position.
enum class RandomStream : uint32_t { kToken = 0, kXtc = 1, kAfterTopP = 2 };

// Uniform in [0, 1), 53 bits; the key is the seed, the counter position and stream.
constexpr double UniformDraw(uint64_t seed, uint64_t position,
                             RandomStream stream = RandomStream::kToken) {
  const auto words =
      Philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                  static_cast<uint32_t>(stream), 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (uint64_t{words[0]} << 32) | words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_PHILOX_H_
