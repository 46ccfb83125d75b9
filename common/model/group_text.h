// KV groups as text, for `tandem info`. Pure functions, thread-safe.
#ifndef TANDEM_COMMON_MODEL_GROUP_TEXT_H_
#define TANDEM_COMMON_MODEL_GROUP_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/spec.h"

namespace tandem::model {

// "layer 4", "layers 0 to 3, 5". REQUIRES: ascending and not empty.
std::string LayersText(const std::vector<uint32_t>& layers);

// What a token attends to: "full attention", "the last 512 tokens", "chunks of 8192 tokens".
std::string WindowText(const KvGroupSpec& group);

// The group's layers, and those that read their caches: "layers 0 to 3, read by layers 5, 6 too".
std::string GroupLayersText(const KvGroupSpec& group);

// "2 KV heads of size 128"; where groups differ, "2 KV heads of size 128 with full attention, 8 of
// size 64 with a window".
std::string HeadsText(const ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_GROUP_TEXT_H_
