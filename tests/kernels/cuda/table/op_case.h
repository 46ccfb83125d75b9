// OpCase: one row of the table: an op at one shape, with the bytes and operations that no
// implementation can do without.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_OP_CASE_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_OP_CASE_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/cuda/table/case_memory.h"

namespace tandem::kernels {

// Encodes the op once, on set `variant` of what it reads.
using EncodeCase = std::function<void(Backend& backend, size_t variant)>;

struct OpCase {
  std::string op;
  std::string shape;
  double bytes = 0;  // every input read once, every output written once
  double flops = 0;  // of products, where there are any
  // Puts `variants` sets of what is large into `memory`: calls one after the other read different
  // ones, so that a cache does not serve what a model would read from memory.
  std::function<EncodeCase(CaseMemory& memory, size_t variants)> prepare{};

  friend std::ostream& operator<<(std::ostream& out, const OpCase& c) {
    return out << c.op << ", " << c.shape;
  }
};

// The model whose shapes the table has, and how it is driven.
struct TableSizes {
  uint32_t hidden = 4096;  // a dense model of 8 billion weights, as Llama 3's
  uint32_t ffn = 14336;
  uint32_t heads = 32;
  uint32_t kv_heads = 8;
  uint32_t head_dim = 128;
  uint32_t vocab = 128256;
  uint32_t moe_hidden = 2048;  // a mixture, as Qwen3-30B-A3B's
  uint32_t moe_ffn = 768;
  uint32_t experts = 128;
  uint32_t experts_chosen = 8;
  uint32_t mla_heads = 16;  // latent attention, as DeepSeek-V2-Lite's
  uint32_t mla_dim = 576;
  uint32_t mla_value_dim = 512;
  uint32_t mla_head_dim = 128;
  std::vector<uint32_t> batches = {1, 8, 32, 64};
  // Where products change their kernels, and beside it.
  std::vector<uint32_t> product_tokens = {1, 2, 4, 5, 8, 9, 16, 64, 512, 4096};
  std::vector<uint32_t> contexts = {1024, 8192};
  uint32_t prefill = 512;
  size_t cold_bytes = size_t{256} << 20;  // several times what the cache of a GPU holds
  size_t copy_bytes = size_t{2} << 30;
  uint32_t matrix = 8192;
};
// For machines that emulate.
TableSizes ToySizes();

std::vector<OpCase> ProductCases(const TableSizes& sizes);
std::vector<OpCase> QkvCases(const TableSizes& sizes);
std::vector<OpCase> AttentionCases(const TableSizes& sizes);
std::vector<OpCase> RowCases(const TableSizes& sizes);
std::vector<OpCase> SamplingCases(const TableSizes& sizes);

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_OP_CASE_H_
