#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/kernels/peaks/mix.h"

namespace tandem::kernels::peaks::amx {
namespace {

// Linux: asm/prctl.h, and the number of the tiles' state.
constexpr int kRequestState = 0x1023, kTileData = 18;

// CPUID leaf 7, EDX: AMX-BF16, AMX-TILE, AMX-INT8.
constexpr unsigned kTileBits = 1u << 22 | 1u << 24 | 1u << 25;

constexpr int kRows = 16;      // of each tile
constexpr int kRowBytes = 64;  // of each tile: the most that there are

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Four accumulators (0 to 3), two tiles of each operand; `multiply` is a round.
template <typename Multiply>
int64_t Run(int64_t rounds, Multiply multiply) {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = kRowBytes;
    config.rows[i] = kRows;
  }
  _tile_loadconfig(&config);  // also zeroes all tiles
  for (int64_t i = 0; i < rounds; ++i) multiply();
  alignas(64) int32_t sums[kRows * kRowBytes / 4];
  _tile_stored(0, sums, kRowBytes);
  _tile_release();
  return sums[0];
}

int64_t RunInt8(int64_t rounds) {
  return Run(rounds, [] {
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  });
}

int64_t RunBf16(int64_t rounds) {
  return Run(rounds, [] {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  });
}

constexpr double kProducts = 4.0 * kRows * kRows * kRowBytes;
constexpr Mix kMixes[] = {{"int8", 2 * kProducts, &RunInt8}, {"bf16", 2 * kProducts / 2, &RunBf16}};

}  // namespace

bool Usable() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  return (edx & kTileBits) == kTileBits && syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}

std::span<const Mix> Mixes() { return kMixes; }

}  // namespace tandem::kernels::peaks::amx
