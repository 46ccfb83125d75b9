// TestServer: a real tandem_coordinator with its workers, on a free port, and the command line to
// talk to it.
#ifndef TANDEM_TESTS_CLUSTER_SERVER_H_
#define TANDEM_TESTS_CLUSTER_SERVER_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cluster/program.h"

namespace tandem::testing {

class TestServer {
 public:
  // Waits for the ready line; null, after a test failure, when it does not come. `flags` follow
  // --model, the worker's path, and small limits.
  static std::unique_ptr<TestServer> Start(const std::string& model,
                                           const std::vector<std::string>& flags = {},
                                           const std::string& worker = kWorker);

  Program& program() { return *program_; }
  const std::string& address() const { return address_; }
  std::vector<pid_t> workers() const { return ChildrenOf(program_->pid()); }

  // `tandem generate --json` with these flags.
  Finished Generate(const std::vector<std::string>& flags, const std::string& input = "") const;
  // A `tandem generate` that streams, left running.
  std::unique_ptr<Program> StartGenerate(const std::vector<std::string>& flags) const;
  // Asks until there is an answer, or the server has ended.
  nlohmann::json Stats() const;
  // Asks for stats until `field` is `value`.
  bool WaitStat(const std::string& field, int64_t value, Deadline deadline) const;
  bool WaitStatAtLeast(const std::string& field, int64_t value, Deadline deadline) const;
  // -1 without an answer.
  int64_t Stat(const std::string& field) const;

 private:
  nlohmann::json TryStats() const;
  TestServer(std::unique_ptr<Program> program, std::string address)
      : program_(std::move(program)), address_(std::move(address)) {}

  std::unique_ptr<Program> program_;
  const std::string address_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_SERVER_H_
