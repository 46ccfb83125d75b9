#include "common/cli/command.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <iostream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/cli/config_file.h"
#include "common/cli/flag.h"
#include "common/cli/output.h"

namespace tandem::cli {
namespace {

std::string OneLine(std::string message) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return message;
}

// The library's error in our words, where its own do not help.
std::string Words(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (error.get_name() != "ArgumentMismatch") return text;
  return absl::StrCat(text.substr(0, text.find(':')), " needs a value");
}

// `status`, and that stdout could not be written.
absl::Status AndFlush(absl::Status status) {
  const absl::Status flushed = Flush(std::cout);
  if (flushed.ok() || absl::IsDataLoss(status)) return status;
  if (status.ok()) return flushed;
  return {status.code(), absl::StrCat(status.message(), ", and ", flushed.message())};
}

}  // namespace

struct Command::Parts {
  Parts(CLI::App& command, std::string command_path)
      : app(command),
        path(std::move(command_path)),
        config(app.add_option(
            "--config", [](const CLI::results_t&) { return true; },
            "file of flags, lines such as `name = value`; flags and TANDEM_NAME variables win")) {
    config->type_name("")->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  std::unique_ptr<CLI::App> owned;  // null for a subcommand, which its parent owns
  CLI::App& app;
  std::string path;
  CLI::Option* config;
  Action action;
  std::vector<Check> checks;
  std::deque<Flag> flags;
  std::vector<std::unique_ptr<Command>> commands;
};

Command::Command(const std::string& name, const std::string& help, const std::string& examples) {
  auto app = std::make_unique<CLI::App>(help, name);
  app->footer(examples);
  app->set_version_flag("--version", [name] { return absl::StrCat(name, " ", BuildVersion()); });
  parts_ = std::make_unique<Parts>(*app, name);
  parts_->owned = std::move(app);
}

Command::Command(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Command::~Command() = default;

void Command::OnRun(Action action) { parts_->action = std::move(action); }
void Command::OnCheck(Check check) { parts_->checks.push_back(std::move(check)); }

void Command::Add(const config::Field& field) { parts_->flags.emplace_back(parts_->app, field); }

void Command::Add(const config::FieldList& fields, const std::vector<std::string_view>& except) {
  for (const config::FieldList::Section& section : fields.sections()) {
    for (const config::Field& field : section.fields) {
      if (std::find(except.begin(), except.end(), field.flag()) != except.end()) continue;
      Add(field);
      parts_->flags.back().option().group(std::string(section.title));
    }
  }
}

void Command::AddHidden(const config::Field& field) {
  Add(field);
  parts_->flags.back().option().group("");
  parts_->flags.back().OnlyOnCommandLine();
}

void Command::OnlyOnCommandLine(std::string_view flag) {
  for (Flag& one : parts_->flags) {
    if (absl::StrCat("--", Sv(one.name())) == flag) return one.OnlyOnCommandLine();
  }
  TANDEM_CHECK(false) << "there is no flag " << flag;
}

void Command::RequireOneOf(const std::vector<std::string>& flags) {
  CLI::Option_group* group = parts_->app.add_option_group(flags.front(), "exactly one of");
  for (Flag& flag : parts_->flags) {
    if (std::find(flags.begin(), flags.end(), absl::StrCat("--", Sv(flag.name()))) == flags.end())
      continue;
    flag.OnlyOnCommandLine();
    group->add_option(&flag.option());
  }
  group->require_option(1);
}

Command& Command::AddCommand(const std::string& name, const std::string& help,
                             const std::string& examples) {
  CLI::App* app = parts_->app.add_subcommand(name, help);
  app->footer(examples);
  parts_->app.require_subcommand(1);
  parts_->commands.push_back(std::unique_ptr<Command>(
      new Command(std::make_unique<Parts>(*app, absl::StrCat(parts_->path, " ", name)))));
  return *parts_->commands.back();
}

Command& Command::Chosen() {
  for (const auto& command : parts_->commands) {
    if (command->parts_->app.parsed()) return command->Chosen();
  }
  return *this;
}

absl::Status Command::CheckArguments() {
  for (const std::string& argument : parts_->app.remaining(/*recurse=*/true)) {
    if (argument == "--") continue;
    const bool flag = argument.starts_with("-") && argument.size() > 1;
    const bool command = !flag && &Chosen() == this && !parts_->commands.empty();
    const std::string name = flag ? argument.substr(0, argument.find('=')) : argument;
    return absl::InvalidArgumentError(absl::StrCat(flag      ? "unknown flag '"
                                                   : command ? "unknown command '"
                                                             : "unexpected argument '",
                                                   name, "'"));
  }
  return absl::OkStatus();
}

absl::Status Command::ParseArguments(const std::vector<std::string>& arguments) {
  try {
    parts_->app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return absl::OkStatus();
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    // The unknown explains what else is wrong; only the help of a known command is shown.
    if (!help || &Chosen() == this) TANDEM_RETURN_IF_ERROR(CheckArguments());
    if (!help) return absl::InvalidArgumentError(Words(error));
    std::ostringstream text;
    parts_->app.exit(error, text, text);  // the help or the version
    TANDEM_RETURN_IF_ERROR(Print(text.str()));
    return absl::CancelledError("--help or --version");
  }
}

absl::StatusOr<ConfigFile> Command::ReadConfigFile(Command& chosen) {
  for (const Command* command : {&chosen, static_cast<Command*>(this)}) {
    const std::vector<std::string>& paths = command->parts_->config->results();
    if (!paths.empty()) return ConfigFile::Read(paths.back());
  }
  return ConfigFile();
}

bool Command::Knows(std::string_view section, std::string_view name) const {
  const bool own = section.empty() &&
                   std::any_of(parts_->flags.begin(), parts_->flags.end(), [&](const Flag& flag) {
                     return flag.name() == name && !flag.only_on_command_line();
                   });
  return own || std::any_of(parts_->commands.begin(), parts_->commands.end(), [&](auto& command) {
           return (section.empty() || section == command->parts_->app.get_name()) &&
                  command->Knows("", name);
         });
}

absl::Status Command::CheckEntries(const ConfigFile& file) const {
  for (const ConfigFile::Entry& entry : file.entries()) {
    if (Knows(entry.section, entry.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--config ", file.path(), ": there is no flag '--", entry.name, "' that a file can set",
        entry.section.empty() ? "" : absl::StrCat(" in [", entry.section, "]")));
  }
  return absl::OkStatus();
}

absl::Status Command::Parse(const std::vector<std::string>& arguments) {
  TANDEM_RETURN_IF_ERROR(ParseArguments(arguments));
  Command& chosen = Chosen();
  TANDEM_ASSIGN_OR_RETURN(const ConfigFile file, ReadConfigFile(chosen));
  TANDEM_RETURN_IF_ERROR(CheckEntries(file));
  if (&chosen != this) TANDEM_RETURN_IF_ERROR(Resolve(file, ""));
  return chosen.Resolve(file, &chosen == this ? "" : chosen.parts_->app.get_name());
}

absl::Status Command::Resolve(const ConfigFile& file, std::string_view section) {
  for (Flag& flag : parts_->flags) TANDEM_RETURN_IF_ERROR(flag.Resolve(file, section));
  for (const Check& check : parts_->checks) TANDEM_RETURN_IF_ERROR(check());
  return absl::OkStatus();
}

int Command::Main(int argc, const char* const* argv) {
  signal(SIGPIPE, SIG_IGN);
  absl::Status status = Parse({argv + 1, argv + argc});
  const bool printed = absl::IsCancelled(status);
  const bool bad_usage = !status.ok() && !printed && !absl::IsDataLoss(status);
  if (printed) status = absl::OkStatus();
  if (status.ok() && !printed) status = Chosen().parts_->action();
  status = AndFlush(status);
  if (status.ok()) return 0;
  std::cerr << parts_->path << ": " << OneLine(std::string(status.message()))
            << (bad_usage ? absl::StrCat(" (see ", Chosen().parts_->path, " --help)") : "") << "\n";
  return bad_usage ? kBadUsage : kFailed;
}

}  // namespace tandem::cli
