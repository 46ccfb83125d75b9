// The tensor directory of a GGUF file and the location of its tensors' data.
#ifndef TANDEM_COMMON_GGUF_PARSE_DIRECTORY_H_
#define TANDEM_COMMON_GGUF_PARSE_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/gguf/cursor.h"
#include "common/gguf/tensor_info.h"

namespace tandem::gguf {

// Reads `count` rows, leaving the cursor behind them. `data` is not set yet: PlaceTensors does
// that.
absl::StatusOr<std::vector<TensorInfo>> ParseDirectory(uint64_t count, Cursor& cursor);

// Sets every tensor's `data`: the data section starts at the first multiple of `alignment` from
// `directory_end` on. Checks alignment, the end of the file, and that no two tensors overlap.
// REQUIRES: `alignment` is a power of two.
absl::Status PlaceTensors(std::span<const std::byte> file, size_t directory_end, uint64_t alignment,
                          std::vector<TensorInfo>& tensors);

// Indices of the rows sorted by name; INVALID_ARGUMENT if a name is duplicated.
absl::StatusOr<std::vector<uint32_t>> SortByName(const std::vector<TensorInfo>& tensors);

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_PARSE_DIRECTORY_H_
