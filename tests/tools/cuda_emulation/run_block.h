// Runs one block of a kernel under the emulation.
#ifndef TANDEM_TESTS_TOOLS_CUDA_EMULATION_RUN_BLOCK_H_
#define TANDEM_TESTS_TOOLS_CUDA_EMULATION_RUN_BLOCK_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/cuda_emulation/execution.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kThreads = 64;

// The error of one block of `threads`; the same whichever way threads run.
inline std::string RunBlock(const std::function<void()>& kernel, uint32_t threads = kThreads,
                            size_t shared_bytes = 4096) {
  std::string errors[2];
  for (const emulation::Order order : {emulation::Order::kForwards, emulation::Order::kBackwards}) {
    emulation::SetOrder(order);
    errors[order == emulation::Order::kBackwards] =
        emulation::RunGrid({1, threads, shared_bytes}, kernel);
  }
  emulation::SetOrder(emulation::Order::kForwards);
  EXPECT_EQ(errors[0].empty(), errors[1].empty()) << errors[0] << errors[1];
  return errors[0];
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_TOOLS_CUDA_EMULATION_RUN_BLOCK_H_
