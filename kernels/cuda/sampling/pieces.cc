#include "kernels/cuda/sampling/pieces.h"

#include <algorithm>

namespace tandem::kernels::cuda {
namespace {

// The grid has at least so many blocks per multiprocessor, if rows have as many pieces.
constexpr uint32_t kBlocksPerMultiprocessor = 2;

}  // namespace

RowPieces CutRows(const Stream& stream, uint32_t rows, uint32_t vocab, uint32_t threads) {
  const uint32_t pieces = Blocks(vocab, uint64_t{threads} * kIdsPerThread);
  const uint32_t wanted =
      Blocks(uint64_t{kBlocksPerMultiprocessor} * stream.multiprocessors(), std::max(rows, 1u));
  return {pieces, std::max(std::min(wanted, pieces), 1u)};
}

}  // namespace tandem::kernels::cuda
