// Runs the work list of a launch of attention without the attention: which block is given which
// tiles of positions.
#ifndef TANDEM_TESTS_KERNELS_CUDA_WORK_LIST_KERNELS_H_
#define TANDEM_TESTS_KERNELS_CUDA_WORK_LIST_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::kernels::cuda {

struct WorkListCase {
  std::vector<int32_t> query_lens;
  std::vector<int32_t> context_lens;
  uint32_t heads = 32;
  uint32_t first_head = 0;
  uint32_t heads_per_kv = 4;
  uint32_t window = 0;
  // The class, and the tile.
  uint32_t rows_above = 0;
  uint32_t rows_upto = 16;
  uint32_t tile_rows = 16;
  uint32_t tile_positions = 64;
  uint32_t piece_positions = 128;

  uint32_t first_kv_head() const { return first_head / heads_per_kv; }
  uint32_t kv_heads() const {
    return (first_head + heads - 1) / heads_per_kv - first_kv_head() + 1;
  }
};

struct WorkShares {
  std::string error;  // empty: it ran
  uint32_t scratch_bytes = 0;
  std::vector<uint32_t> tiles_of_block;
  // (sequence, KV head, tile of positions): how often blocks were given it, over all row tiles.
  uint32_t max_tiles = 0;
  std::vector<uint32_t> given;
};

WorkShares ShareOut(const WorkListCase& c);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_KERNELS_CUDA_WORK_LIST_KERNELS_H_
