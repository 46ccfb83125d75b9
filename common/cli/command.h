// Command: a program's command line, or that of one of its subcommands: flags are Fields of
// common/config. The parsing library is private to this folder.
//
// A flag's value comes from the first of command line, environment variable (Field::variable), file
// of --config, and default that has one.
//
// One thread. Variables that fields refer to must outlive the parse.
#ifndef TANDEM_COMMON_CLI_COMMAND_H_
#define TANDEM_COMMON_CLI_COMMAND_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/field.h"

namespace tandem::cli {

class ConfigFile;

// Runs after the command line is parsed. An error becomes one line on stderr and exit status 1.
using Action = std::function<absl::Status()>;
// Of the flags together; an error is bad usage.
using Check = std::function<absl::Status()>;

inline constexpr int kFailed = 1;
inline constexpr int kBadUsage = 2;

class Command {
 public:
  // `examples` are printed after the help. --version and --config are built in.
  Command(const std::string& name, const std::string& help, const std::string& examples);
  ~Command();

  // Sets the action of the command.
  void OnRun(Action action);
  // Adds a check, made once all flags have their values.
  void OnCheck(Check check);
  // Switches that are on by default also get --no-NAME. Of a repeated flag the last value counts.
  void Add(const config::Field& field);
  // With a heading for each section, without the flags in `except`.
  void Add(const config::FieldList& fields, const std::vector<std::string_view>& except = {});
  // Not shown in the help, only on the command line.
  void AddHidden(const config::Field& field);
  // Neither environment nor --config sets this flag, which was added before: what it allows is
  // meant for one call.
  void OnlyOnCommandLine(std::string_view flag);
  // Exactly one of these flags, which were added before, must be given on the command line.
  void RequireOneOf(const std::vector<std::string>& flags);
  // Owned by this command. With subcommands, one of them must be given.
  Command& AddCommand(const std::string& name, const std::string& help,
                      const std::string& examples);

  // Values are stored to the fields' variables. An error, in one line, is bad usage; but CANCELLED:
  // --help or --version was printed, DATA_LOSS: it could not be.
  absl::Status Parse(const std::vector<std::string>& arguments);
  // Parses and runs; returns the exit code. Errors are one line on stderr that begins with the
  // program's name. A write to stdout that failed is one, so SIGPIPE is ignored from here on.
  int Main(int argc, const char* const* argv);

 private:
  struct Parts;
  explicit Command(std::unique_ptr<Parts> parts);

  absl::Status ParseArguments(const std::vector<std::string>& arguments);
  // The chosen subcommand, or this command.
  Command& Chosen();
  // OK if all arguments are known, else an error that names the first unknown one.
  absl::Status CheckArguments();
  // The file of --config, on either command; an empty one without.
  absl::StatusOr<ConfigFile> ReadConfigFile(Command& chosen);
  // Gives every flag of this command its value, and makes the checks.
  absl::Status Resolve(const ConfigFile& file, std::string_view section);
  // INVALID_ARGUMENT naming an entry that no command has.
  absl::Status CheckEntries(const ConfigFile& file) const;
  bool Knows(std::string_view section, std::string_view name) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::cli

#endif  // TANDEM_COMMON_CLI_COMMAND_H_
