#include "tests/cluster/server.h"

#include <gtest/gtest.h>

#include <utility>

namespace tandem::testing {
namespace {

constexpr auto kReadyTimeout = std::chrono::seconds(120);
constexpr char kReady[] = "ready: listening on ";

std::string AddressIn(const std::string& out) {
  const size_t begin = out.find(kReady) + sizeof(kReady) - 1;
  return out.substr(begin, out.find(',', begin) - begin);
}

}  // namespace

std::unique_ptr<TestServer> TestServer::Start(const std::string& model,
                                              const std::vector<std::string>& flags,
                                              const std::string& worker) {
  std::vector<std::string> argv = {kCoordinator, "--model",        model,
                                   "--listen",   "127.0.0.1:0",    "--worker-binary",
                                   worker,       "--max-num-seqs", "16"};
  // The usage of an answer counts drafts, and how many there are depends on what else runs.
  argv.insert(argv.end(), {"--speculation", "off"});
  argv.insert(argv.end(), flags.begin(), flags.end());
  auto program = Program::Start(argv);
  const auto deadline = Deadline::After(kReadyTimeout);
  if (!program->WaitStdout(kReady, deadline) || !program->WaitStdout("\n", deadline)) {
    ADD_FAILURE() << "no ready line; stderr: " << program->Stderr();
    return nullptr;
  }
  std::string address = AddressIn(program->Stdout());
  return std::unique_ptr<TestServer>(new TestServer(std::move(program), std::move(address)));
}

Finished TestServer::Generate(const std::vector<std::string>& flags,
                              const std::string& input) const {
  std::vector<std::string> argv = {kTandem, "generate", "--server", address_, "--json"};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return RunProgram(argv, input);
}

std::unique_ptr<Program> TestServer::StartGenerate(const std::vector<std::string>& flags) const {
  std::vector<std::string> argv = {kTandem, "generate", "--server", address_};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return Program::Start(argv);
}

nlohmann::json TestServer::Stats() const {
  const Deadline deadline = Deadline::After(kReadyTimeout);
  nlohmann::json stats;
  do {
    stats = TryStats();
  } while (!stats.is_object() && IsRunning(program_->pid()) && !deadline.Passed());
  return stats;
}

nlohmann::json TestServer::TryStats() const {
  const Finished stats = RunProgram({kTandem, "stats", "--server", address_, "--json"});
  return nlohmann::json::parse(stats.out, nullptr, /*allow_exceptions=*/false);
}

bool TestServer::WaitStat(const std::string& field, int64_t value, Deadline deadline) const {
  do {
    if (Stat(field) == value) return true;
  } while (!deadline.Passed());
  return false;
}

bool TestServer::WaitStatAtLeast(const std::string& field, int64_t value, Deadline deadline) const {
  do {
    if (Stat(field) >= value) return true;
  } while (!deadline.Passed());
  return false;
}

int64_t TestServer::Stat(const std::string& field) const {
  const nlohmann::json stats = TryStats();
  return stats.is_object() ? stats.value(field, int64_t{-1}) : -1;
}

}  // namespace tandem::testing
