// LoRA adapters with random values, of every matrix of a model that can have one.
#ifndef TANDEM_TESTS_CLUSTER_LORA_RANDOM_ADAPTER_H_
#define TANDEM_TESTS_CLUSTER_LORA_RANDOM_ADAPTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/gguf/file.h"
#include "common/model/spec.h"

namespace tandem::testing {

struct RandomChange {
  const gguf::TensorInfo* tensor;  // of the model
  std::vector<float> a;            // (rank, columns)
  std::vector<float> b;            // (rows, rank)
};

struct RandomAdapter {
  uint32_t rank = 0;
  float alpha = 0;
  std::vector<RandomChange> changes;

  std::vector<std::byte> File(const std::string& architecture) const;
};

// `model` must outlive it.
RandomAdapter MakeRandomAdapter(const gguf::File& model, const model::ModelSpec& spec,
                                uint32_t rank, float alpha, uint32_t seed);

// Of the model at `model_path`, in a file of the test's; its path.
std::string WriteRandomAdapter(const std::string& model_path, uint32_t rank, uint32_t seed);

// The path of a file of the test's with these bytes.
std::string WriteTestFile(const std::string& name, const std::vector<std::byte>& bytes);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_LORA_RANDOM_ADAPTER_H_
