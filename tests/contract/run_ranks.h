// One thread per rank, all joined before it returns.
#ifndef TANDEM_TESTS_CONTRACT_RUN_RANKS_H_
#define TANDEM_TESTS_CONTRACT_RUN_RANKS_H_

#include <thread>
#include <vector>

namespace tandem {

template <typename Body>
void RunRanks(int size, Body body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tandem

#endif  // TANDEM_TESTS_CONTRACT_RUN_RANKS_H_
