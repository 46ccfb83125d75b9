// Every broken file of tests/golden/bad-gguf through the programs that open files: refused in one
// clear line with exit code 1, or accepted, as its index says; never a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cluster/golden_cases.h"
#include "tests/cluster/program.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

struct BadFile {
  std::string path;
  std::string defect;
  std::string expect;
};

std::vector<BadFile> Files() {
  std::ifstream file(GoldenPath("bad-gguf/index.json"));
  const auto index = nlohmann::json::parse(file);
  std::vector<BadFile> files;
  for (const auto& entry : index.at("files")) {
    files.push_back({.path = GoldenPath("bad-gguf/" + entry.at("file").get<std::string>()),
                     .defect = entry.at("defect"),
                     .expect = entry.at("expect")});
  }
  return files;
}

void ExpectRefusedInOneLine(const Finished& finished, const std::string& program) {
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  const size_t message = finished.err.find(program + ": ");
  ASSERT_NE(message, std::string::npos) << finished.err;
  // Lines of its log may come before.
  EXPECT_EQ(std::count(finished.err.begin() + message, finished.err.end(), '\n'), 1)
      << finished.err;
}

TEST(BadGgufTest, Info) {
  for (const BadFile& bad : Files()) {
    SCOPED_TRACE(bad.path + ": " + bad.defect);
    const Finished finished = RunProgram({kTandem, "info", bad.path});
    if (bad.expect == "accept") {
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
    }
    if (bad.expect == "reject" || finished.exit_code != 0) {
      ExpectRefusedInOneLine(finished, "tandem");
    }
  }
}

TEST(BadGgufTest, CoordinatorRefuses) {
  for (const BadFile& bad : Files()) {
    if (bad.expect != "reject") continue;
    SCOPED_TRACE(bad.path + ": " + bad.defect);
    ExpectRefusedInOneLine(RunProgram({kCoordinator, "--model", bad.path, "--listen", "127.0.0.1:0",
                                       "--worker-binary", kWorker}),
                           "tandem_coordinator");
  }
}

TEST(BadGgufTest, CoordinatorServesTheSoundOnes) {
  for (const BadFile& bad : Files()) {
    if (bad.expect != "accept") continue;
    SCOPED_TRACE(bad.path + ": " + bad.defect);
    auto server = TestServer::Start(bad.path);
    ASSERT_NE(server, nullptr);
    const Finished answer =
        server->Generate({"--prompt-token-ids", "1,2,3", "--max-tokens", "4", "--ignore-eos"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
  }
}

}  // namespace
}  // namespace tandem::testing
