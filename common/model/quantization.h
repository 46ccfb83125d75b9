// The common name of a file's mix of tensor types: "Q4_K_M", "Q8_0".
#ifndef TANDEM_COMMON_MODEL_QUANTIZATION_H_
#define TANDEM_COMMON_MODEL_QUANTIZATION_H_

#include <string>

#include "common/gguf/file.h"

namespace tandem::model {

// From general.file_type if the file has it, else the type that takes the most bytes. For display
// only.
std::string QuantizationName(const gguf::File& file);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_QUANTIZATION_H_
