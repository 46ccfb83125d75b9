// Command: a program's command line, or that of one of its subcommands: flags are Fields of
// common/config. What parses them is command.cc's business alone.
//
// One thread. What fields refer to must outlive the parse.
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
  // `examples` end the help. --version is known.
  Command(const std::string& name, const std::string& help, const std::string& examples);
  ~Command();

  // What the command does once it is chosen.
  void OnRun(Action action);
  // Switches that are on by default also get --no-NAME.
  void Add(const config::Field& field);
  // With a heading for each part, but for the flags in `except`.
  void Add(const config::FieldList& fields, const std::vector<std::string_view>& except = {});
  // Not shown in the help.
  void AddHidden(const config::Field& field);
  // Exactly one of these flags, which were added before, must be given.
  void RequireOneOf(const std::vector<std::string>& flags);
  // Lives as long as this. With subcommands, one of them must be given.
  Command& AddCommand(const std::string& name, const std::string& help,
                      const std::string& examples);

  // Values go where the fields refer to. INVALID_ARGUMENT for what is no usage of this command,
  // OUT_OF_RANGE for a value that is not allowed; one line.
  absl::Status Parse(const std::vector<std::string>& arguments);
  // Parses and runs; returns the exit code. Errors are one line on stderr that begins with the
  // program's name.
  int Main(int argc, const char* const* argv);

 private:
  struct Parts;
  explicit Command(std::unique_ptr<Parts> parts);

  // Sets the fields from what was given, of this command and of the chosen one below it.
  absl::Status SetFields();
  // Of this command, or of the chosen one below it.
  const Action& ChosenAction() const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::cli

#endif  // TANDEM_COMMON_CLI_COMMAND_H_
