// A model in the shape of a published one, with only its header and vectors on a file: the matrices
// are holes, whose values BenchBackend makes. So 30 billion weights cost neither disk nor time.
#ifndef TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_MODEL_H_
#define TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/type.h"

namespace tandem::worker {

struct BenchShape {
  std::string name;
  std::string architecture;
  uint32_t layers = 0;
  uint32_t hidden = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn = 0;
  uint32_t vocab = 0;
  uint32_t context = 0;
  uint32_t experts = 0;  // 0: dense
  uint32_t experts_chosen = 0;
  uint32_t expert_ffn = 0;
  bool tied = false;
  tensor::Type type = tensor::Type::kQ4_K;
  tensor::Type wide = tensor::Type::kQ6_K;  // of the head, and half of V and down, as in Q4_K_M
};

BenchShape Qwen3_0_6B();
BenchShape Llama3_8B();
BenchShape Qwen3_30B_A3B();
// For machines that emulate.
BenchShape ToyDense();
BenchShape ToyMixture();

// What a step reads and computes, for its roof.
struct BenchCost {
  double dense_bytes = 0;   // matrices that every step reads whole
  double expert_bytes = 0;  // of all experts
  double expert_share = 1;  // of the experts, chosen by one token
  double token_flops = 0;   // of one token's products, without the head and attention
  double kv_bytes = 0;      // of one position, F16
};

// The file in memory; gone with the object.
class BenchModel {
 public:
  static absl::StatusOr<BenchModel> Make(const BenchShape& shape);
  BenchModel(BenchModel&& other) noexcept;
  BenchModel& operator=(BenchModel&&) = delete;
  ~BenchModel();

  std::string path() const;
  const BenchCost& cost() const { return cost_; }

 private:
  BenchModel(int file, const BenchCost& cost) : file_(file), cost_(cost) {}

  int file_;
  BenchCost cost_;
};

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_MODEL_H_
