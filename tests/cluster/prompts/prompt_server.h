// What tests of requests that generate nothing share: a server for every golden model, and a loss
// of workers while it is asked.
#ifndef TANDEM_TESTS_CLUSTER_PROMPTS_PROMPT_SERVER_H_
#define TANDEM_TESTS_CLUSTER_PROMPTS_PROMPT_SERVER_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/server.h"

namespace tandem::testing {

struct PromptCase {
  std::string model;  // of tests/golden/arch
  int ranks, chunk;   // tokens of a prefill; 0: whole prompts
};

// Every golden model on one rank, and on two in chunks.
std::vector<PromptCase> AllPromptCases();
std::string PromptCaseName(const ::testing::TestParamInfo<PromptCase>& info);

// A server of the model at `path` whose results may be compared with the goldens. Null, after a
// test failure, when it does not start.
std::unique_ptr<TestServer> StartFor(const std::string& path, const PromptCase& one);

// Kills a worker of `server` while another thread calls `ask` in a loop. Returns once the workers
// were restarted and another call has returned.
void AskThroughALoss(TestServer& server, const std::function<void()>& ask);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_PROMPTS_PROMPT_SERVER_H_
