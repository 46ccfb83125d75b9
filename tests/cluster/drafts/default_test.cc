// A server guesses by default, if its model is dense.
#include <gtest/gtest.h>

#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

// "auto" is the default, which other tests turn off.
TEST(DefaultSpeculationTest, PromptsOfADenseModelAreLookedUp) {
  const auto server = TestServer::Start("models/demo.gguf", {"--speculation", "auto"});
  ASSERT_NE(server, nullptr);
  const Finished answer =
      server->Generate({"--prompt", "Karen went to the courtyard.", "--max-tokens", "200",
                        "--temperature", "0", "--ignore-eos"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_GT(server->Stat("tandem_spec_decode_num_accepted_tokens_total"), 0);
}

}  // namespace
}  // namespace tandem::testing
