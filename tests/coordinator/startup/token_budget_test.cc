#include "coordinator/startup/token_budget.h"

#include <gtest/gtest.h>

namespace tandem::coordinator {
namespace {

config::WorkerConfig Worker(config::Device device, uint32_t max_num_seqs = 32) {
  config::WorkerConfig worker;
  worker.device.device = device;
  worker.limits.max_num_seqs = max_num_seqs;
  return worker;
}

TEST(TokenBudgetTest, DenseModelsOnTheCpuTakeShorterSteps) {
  const model::ModelSpec dense;
  EXPECT_EQ(DefaultTokenBudget(Worker(config::Device::kCpu), dense), 256u);
  EXPECT_EQ(DefaultTokenBudget(Worker(config::Device::kCuda), dense), 512u);
  model::ModelSpec experts, recurrent;
  experts.moe.emplace();
  recurrent.delta_net.emplace();
  EXPECT_EQ(DefaultTokenBudget(Worker(config::Device::kCpu), experts), 512u);
  EXPECT_EQ(DefaultTokenBudget(Worker(config::Device::kCpu), recurrent), 512u);
}

TEST(TokenBudgetTest, DecodesLeaveHalfOfTheStep) {
  EXPECT_EQ(DefaultTokenBudget(Worker(config::Device::kCpu, 128), {}), 256u);
  EXPECT_EQ(DefaultTokenBudget(Worker(config::Device::kCpu, 129), {}), 258u);
  EXPECT_EQ(DefaultTokenBudget(Worker(config::Device::kCuda, 4096), {}), 8192u);
}

}  // namespace
}  // namespace tandem::coordinator
