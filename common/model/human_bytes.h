// Human-readable byte counts.
#ifndef TANDEM_COMMON_MODEL_HUMAN_BYTES_H_
#define TANDEM_COMMON_MODEL_HUMAN_BYTES_H_

#include <cstdint>
#include <string>

namespace tandem::model {

// "512 B", "1.5 KiB", "3.02 GiB": at most three significant digits after rounding.
std::string HumanBytes(uint64_t bytes);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_HUMAN_BYTES_H_
