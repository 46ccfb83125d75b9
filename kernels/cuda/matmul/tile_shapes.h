// The shapes of tiles that products of a number of tokens take (bf16_tile.h).
#ifndef TANDEM_KERNELS_CUDA_MATMUL_TILE_SHAPES_H_
#define TANDEM_KERNELS_CUDA_MATMUL_TILE_SHAPES_H_

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// kBlocks: how many of its blocks a multiprocessor runs at a time; registers follow.
template <uint32_t kRowTilesOf, uint32_t kTokenTilesOf, uint32_t kBlocksOf>
struct TileShape {
  static constexpr uint32_t kRowTiles = kRowTilesOf;
  static constexpr uint32_t kTokenTiles = kTokenTilesOf;
  static constexpr uint32_t kBlocks = kBlocksOf;
  static constexpr uint32_t kRows = 16 * kRowTiles;
  static constexpr uint32_t kTokens = 8 * kTokenTiles;
};

using LowestTile = TileShape<1, 1, 3>;
using LowTile = TileShape<2, 1, 2>;
using MiddleTile = TileShape<2, 2, 2>;
using WideTile = TileShape<2, 4, 1>;
using LargestTile = TileShape<4, 4, 1>;

template <typename Shape>
constexpr uint32_t PiecesOf(uint32_t tokens) {
  return (tokens + Shape::kTokens - 1) / Shape::kTokens;
}

// Calls launch with the shape for so many tokens and rows of weights. Few tokens take kLowest.
// Tiles of 64 rows read the inputs less often than those of 32, but must not leave many
// multiprocessors idle.
template <typename kLowest, typename Launch>
void ForProductShape(const Stream& stream, uint32_t tokens, uint32_t rows, Launch launch) {
  const uint32_t pieces = PiecesOf<LargestTile>(tokens);
  if (tokens <= kLowest::kTokens) {
    launch(kLowest());
  } else if (tokens <= MiddleTile::kTokens) {
    launch(MiddleTile());
  } else if (rows / LargestTile::kRows * pieces * 10 < 9 * stream.multiprocessors()) {
    launch(WideTile());
  } else {
    launch(LargestTile());
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_TILE_SHAPES_H_
