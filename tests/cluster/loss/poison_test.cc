// A request that ends its worker each time it is computed, on a real server: it fails, and its
// neighbours get the tokens of an undisturbed run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

constexpr char kPoisonWorker[] = "tests/cluster/loss/poison_worker";
constexpr int kNeighbours = 50;

// One request; a third of them are sampled.
std::string Neighbour(int i) {
  return absl::StrCat("{\"prompt_token_ids\": [1, 2, ", 3 + i, "], \"max_tokens\": ", 100 + i,
                      ", \"temperature\": ", i % 3 == 0 ? "0.8" : "0", ", \"seed\": ", i,
                      ", \"logprobs\": 1, \"ignore_eos\": true}\n");
}

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

// An id that is in none of the neighbours' prompts and answers.
int UnusedId(const std::vector<std::string>& answers) {
  std::set<int> used;
  for (int id = 1; id < 3 + kNeighbours; ++id) used.insert(id);
  for (int i = 0; i < kNeighbours; ++i) {
    const nlohmann::json answer = nlohmann::json::parse(answers.at(i));
    for (const int id : answer.at("token_ids")) used.insert(id);
  }
  int unused = 1;
  while (used.contains(unused)) ++unused;
  return unused;
}

class PoisonTest : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<TestServer> StartServer(const std::string& device,
                                                 const std::string& worker) {
    return TestServer::Start(
        "models/demo.gguf",
        {"--tensor-parallel-size", "2", "--device", device, "--num-kv-blocks", "1024",
         "--max-model-len", "256", "--threads-per-worker", "1", "--step-transport", GetParam(),
         "--max-num-seqs", "64", "--max-restarts", "3"},
        worker);
  }
};

TEST_P(PoisonTest, OneRequestFailsAndItsNeighboursLoseNothing) {
  std::string requests;
  for (int i = 0; i < kNeighbours; ++i) requests += Neighbour(i);
  auto server = StartServer("cpu", kWorker);
  ASSERT_NE(server, nullptr);
  const Finished finished = server->Generate({"--prompts-file", "-"}, requests);
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const std::vector<std::string> undisturbed = Lines(finished.out);

  const std::string poison = std::to_string(UnusedId(undisturbed));
  setenv("TANDEM_TEST_POISON_TOKEN", poison.c_str(), /*overwrite=*/1);
  server = StartServer("cuda", kPoisonWorker);
  ASSERT_NE(server, nullptr);
  // The last to arrive, so that the others are there.
  absl::StrAppend(&requests, "{\"prompt_token_ids\": [1, 2, ", poison, ", 4]}\n");
  std::vector<std::string> disturbed =
      Lines(server->Generate({"--prompts-file", "-"}, requests).out);
  ASSERT_EQ(disturbed.size(), undisturbed.size() + 1);
  const std::string failed = disturbed.at(kNeighbours);
  for (const char* part : {"ended a worker each time it was computed, at last alone: rank ",
                           "killed by signal 6 (Aborted)"}) {
    EXPECT_NE(failed.find(part), std::string::npos) << failed;
  }
  disturbed.erase(disturbed.begin() + kNeighbours);
  for (int i = 0; i < kNeighbours; ++i) EXPECT_EQ(disturbed[i], undisturbed[i]);
  const auto stats = server->Stats();
  EXPECT_EQ(stats["tandem_restarts_total"], 3);
  EXPECT_EQ(stats["tandem_kv_blocks_free"], stats["tandem_kv_blocks"]);
}

INSTANTIATE_TEST_SUITE_P(Transports, PoisonTest, ::testing::Values("shm", "grpc"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace tandem::testing
