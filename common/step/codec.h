// The one flat little-endian form of StepDescriptor and StepResult: a header with magic and
// version, then tagged sections (tag, length, bytes). The same bytes go through the shared-memory
// ring and as `bytes` of the gRPC stream. Unknown sections, versions, duplicates, truncation and
// trailing bytes are INVALID_ARGUMENT. See docs/worker-protocol.md.
#ifndef TANDEM_COMMON_STEP_CODEC_H_
#define TANDEM_COMMON_STEP_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"

namespace tandem::step {

// Replaces `out`; reuses its memory.
void Serialize(const StepDescriptor& step, std::vector<uint8_t>& out);
absl::StatusOr<StepDescriptor> ParseDescriptor(std::span<const uint8_t> frame);

// A failed result carries no rows, and at most this much of its message; payloads of the status are
// dropped.
inline constexpr size_t kMaxStatusMessageBytes = 4096;
void Serialize(const StepResult& result, std::vector<uint8_t>& out);
absl::StatusOr<StepResult> ParseResult(std::span<const uint8_t> frame);
// The most bytes that the result of `row` can take.
size_t MaxRowBytes(const RowRequest& row, uint32_t vocab_size);
// The bytes of that many pooled states.
size_t PooledBytes(size_t num_pools, uint32_t hidden_size);
// The most bytes that the result of `step` can take on the wire (max_tokens of every row).
size_t MaxResultBytes(const StepDescriptor& step, uint32_t vocab_size, uint32_t hidden_size);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_CODEC_H_
