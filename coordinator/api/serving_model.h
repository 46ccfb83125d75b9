// ServingModel: the properties of the served model needed by the API. Plain data, fixed at start.
#ifndef TANDEM_COORDINATOR_API_SERVING_MODEL_H_
#define TANDEM_COORDINATOR_API_SERVING_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/tokenizer/tokenizer.h"

namespace tandem::coordinator {

struct ServingModel {
  std::string name;
  std::string architecture;
  std::string quantization;
  uint32_t max_model_len = 0;  // prompt and generated tokens of one sequence
  uint32_t vocab_size = 0;     // of the head; token ids of a request are below it
  int tensor_parallel_size = 1;
  uint32_t max_num_seqs = 0;      // requests that run at a time
  bool clamp_max_tokens = false;  // where a request does not say
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_SERVING_MODEL_H_
