// Command: a program's command line, or that of one of its subcommands: flags are Fields of
// common/config. The parsing library is private to command.cc.
//
// One thread. Variables that fields refer to must outlive the parse.
#ifndef TANDEM_COMMON_CLI_COMMAND_H_
#define TANDEM_COMMON_CLI_COMMAND_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/config/field.h"

namespace tandem::cli {

// Runs after the command line is parsed. An error becomes one line on stderr and exit status 1.
using Action = std::function<absl::Status()>;

inline constexpr int kFailed = 1;
inline constexpr int kBadUsage = 2;

class Command {
 public:
  // `examples` are printed after the help. --version is built in.
  Command(const std::string& name, const std::string& help, const std::string& examples);
  ~Command();

  // Sets the action of the command.
  void OnRun(Action action);
  // Switches that are on by default also get --no-NAME.
  void Add(const config::Field& field);
  // With a heading for each section, without the flags in `except`.
  void Add(const config::FieldList& fields, const std::vector<std::string_view>& except = {});
  // Not shown in the help.
  void AddHidden(const config::Field& field);
  // Exactly one of these flags, which were added before, must be given.
  void RequireOneOf(const std::vector<std::string>& flags);
  // Owned by this command. With subcommands, one of them must be given.
  Command& AddCommand(const std::string& name, const std::string& help,
                      const std::string& examples);

  // Values are stored to the fields' variables. INVALID_ARGUMENT for invalid usage of this command,
  // OUT_OF_RANGE for a value that is not allowed; one line.
  absl::Status Parse(const std::vector<std::string>& arguments);
  // Parses and runs; returns the exit code. Errors are one line on stderr that begins with the
  // program's name.
  int Main(int argc, const char* const* argv);

 private:
  struct Parts;
  explicit Command(std::unique_ptr<Parts> parts);

  // Sets the fields of this command and of the chosen subcommand from the command line.
  absl::Status SetFields();
  // The action of this command, or of the chosen subcommand.
  const Action& ChosenAction() const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::cli

#endif  // TANDEM_COMMON_CLI_COMMAND_H_
