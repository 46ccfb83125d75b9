// Scales of matrices: beside "X.weight" a file may have "X.scale", by which the product with the
// matrix is multiplied; of experts' matrices, a number each. NVFP4 comes with them, but their type
// is not asked for. "X.input_scale", which products of 4-bit activations need, is not used.
//
// Source: https://github.com/ggml-org/llama.cpp (src/llama-model.cpp, "generic pass").
#ifndef TANDEM_COMMON_MODEL_MATRIX_SCALES_H_
#define TANDEM_COMMON_MODEL_MATRIX_SCALES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/architecture.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "common/model/tensor_row.h"

namespace tandem::model {

// The matrix whose scale, or input scale, a tensor is: a row of "blk.{L}.X.weight" for the name of
// "blk.3.X.scale". Null for other names, for one that the table has as something else, and where
// there is no such row, or one of a vector or an embedding.
const TensorRow* FindScaledRow(const Architecture& architecture, const ParsedName& name);

// Checks the type, the count and the values of the scale of a row's matrix, if the file has one.
absl::Status CheckScale(const gguf::File& file, const Architecture& architecture,
                        const TensorRow& row, int layer, const ModelSpec& spec);

// The scales of the rank's experts, or the matrix's one; empty if the file has none. Rows that are
// parts of one tensor share its scale. INVALID_ARGUMENT for a scale that CheckScale refuses.
absl::StatusOr<std::vector<float>> ReadScales(const gguf::File& file,
                                              const Architecture& architecture,
                                              const TensorRow& row, int layer,
                                              const ModelSpec& spec, const ShardPlan& plan);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_MATRIX_SCALES_H_
