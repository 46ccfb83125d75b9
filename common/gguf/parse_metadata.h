// The key/value section of a GGUF file.
#ifndef TANDEM_COMMON_GGUF_PARSE_METADATA_H_
#define TANDEM_COMMON_GGUF_PARSE_METADATA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/gguf/cursor.h"
#include "common/gguf/metadata.h"

namespace tandem::gguf {

// Reads `count` pairs, leaving the cursor behind them. Arrays of arrays are rejected: no known file
// has them.
absl::StatusOr<Metadata> ParseMetadata(uint64_t count, Cursor& cursor);

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_PARSE_METADATA_H_
