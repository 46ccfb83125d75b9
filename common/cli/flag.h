// Flag: a Field on a command line, and where its value comes from. Private to this folder.
#ifndef TANDEM_COMMON_CLI_FLAG_H_
#define TANDEM_COMMON_CLI_FLAG_H_

#include <string_view>

#include "absl/status/status.h"
#include "common/cli/config_file.h"
#include "common/config/field.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem::cli {

class Flag {
 public:
  // Adds an option for `field` to `app`, which must outlive this.
  Flag(CLI::App& app, const config::Field& field);

  CLI::Option& option() { return *option_; }
  std::string_view name() const { return field_.name(); }

  // Neither environment nor file can set it. True of positional arguments from the start.
  void OnlyOnCommandLine() { only_on_command_line_ = true; }
  bool only_on_command_line() const { return only_on_command_line_; }

  // Sets the field from the first of command line, environment and file (the entries of `section`)
  // that has a value. INVALID_ARGUMENT or OUT_OF_RANGE naming the source and the flag; so for a
  // required flag that none of them has.
  absl::Status Resolve(const ConfigFile& file, std::string_view section);

 private:
  config::Field field_;
  CLI::Option* option_;  // owned by the app
  bool only_on_command_line_;
};

}  // namespace tandem::cli

#endif  // TANDEM_COMMON_CLI_FLAG_H_
