#include "common/cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/version.h"

namespace tandem::cli {
namespace {

// A field and its values on the command line.
struct Given {
  config::Field field;
  std::vector<std::string> texts;
  bool switched = false;
  CLI::Option* option = nullptr;
};

std::string OneLine(std::string message) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return message;
}

absl::Status SetField(Given& given) {
  if (given.option->count() == 0) return absl::OkStatus();
  config::Field& field = given.field;
  if (field.is_switch()) return field.Set(given.switched ? "true" : "false");
  if (field.is_list()) field.Clear();
  for (const std::string& text : given.texts) TANDEM_RETURN_IF_ERROR(field.Set(text));
  return absl::OkStatus();
}

}  // namespace

struct Command::Parts {
  explicit Parts(CLI::App& command) : app(command) {}

  std::unique_ptr<CLI::App> owned;  // null for a subcommand, which its parent owns
  CLI::App& app;
  Action action;
  std::deque<Given> given;  // stable addresses
  std::vector<std::unique_ptr<Command>> commands;
};

Command::Command(const std::string& name, const std::string& help, const std::string& examples) {
  auto app = std::make_unique<CLI::App>(help, name);
  app->footer(examples);
  app->set_version_flag("--version", [name] { return absl::StrCat(name, " ", BuildVersion()); });
  parts_ = std::make_unique<Parts>(*app);
  parts_->owned = std::move(app);
}

Command::Command(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Command::~Command() = default;

void Command::OnRun(Action action) { parts_->action = std::move(action); }

void Command::Add(const config::Field& field) {
  Given& given = parts_->given.emplace_back(Given{field, {}, false, nullptr});
  const std::string names(field.meta().flag);
  std::string help(field.meta().help);
  if (field.is_switch()) {
    const std::string off = absl::StrCat(",!--no-", Sv(field.name()));
    given.option =
        parts_->app.add_flag(field.Text() == "true" ? names + off : names, given.switched, help);
    return;
  }
  if (field.has_names()) absl::StrAppend(&help, help.empty() ? "" : ": ", field.Allowed());
  given.option = parts_->app.add_option(names, given.texts, help);
  given.option->allow_extra_args(field.is_word_list())->required(field.meta().required);
  given.option->default_str(field.Text());
  given.option->type_name("");
  if (!field.is_list()) given.option->expected(1);
}

void Command::Add(const config::FieldList& fields, const std::vector<std::string_view>& except) {
  for (const config::FieldList::Section& section : fields.sections()) {
    for (const config::Field& field : section.fields) {
      if (std::find(except.begin(), except.end(), field.flag()) != except.end()) continue;
      Add(field);
      parts_->given.back().option->group(std::string(section.title));
    }
  }
}

void Command::AddHidden(const config::Field& field) {
  Add(field);
  parts_->given.back().option->group("");
}

void Command::RequireOneOf(const std::vector<std::string>& flags) {
  CLI::Option_group* group = parts_->app.add_option_group(flags.front(), "exactly one of");
  for (const std::string& flag : flags) group->add_option(parts_->app.get_option(flag));
  group->require_option(1);
}

Command& Command::AddCommand(const std::string& name, const std::string& help,
                             const std::string& examples) {
  CLI::App* app = parts_->app.add_subcommand(name, help);
  app->footer(examples);
  parts_->app.require_subcommand(1);
  parts_->commands.push_back(std::unique_ptr<Command>(new Command(std::make_unique<Parts>(*app))));
  return *parts_->commands.back();
}

absl::Status Command::SetFields() {
  for (Given& given : parts_->given) TANDEM_RETURN_IF_ERROR(SetField(given));
  for (const auto& command : parts_->commands) {
    if (command->parts_->app.parsed()) TANDEM_RETURN_IF_ERROR(command->SetFields());
  }
  return absl::OkStatus();
}

const Action& Command::ChosenAction() const {
  for (const auto& command : parts_->commands) {
    if (command->parts_->app.parsed()) return command->ChosenAction();
  }
  return parts_->action;
}

absl::Status Command::Parse(const std::vector<std::string>& arguments) {
  try {
    parts_->app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      parts_->app.exit(error);  // prints the help or the version
      return absl::CancelledError("--help or --version");
    }
    return absl::InvalidArgumentError(OneLine(error.what()));
  }
  return SetFields();
}

int Command::Main(int argc, const char* const* argv) {
  const std::string program = parts_->app.get_name();
  absl::Status status = Parse({argv + 1, argv + argc});
  if (absl::IsCancelled(status)) return 0;
  const bool bad_usage = absl::IsInvalidArgument(status);
  if (status.ok()) status = ChosenAction()();
  if (status.ok()) return 0;
  std::cout.flush();
  std::cerr << program << ": " << OneLine(std::string(status.message()))
            << (bad_usage ? absl::StrCat(" (see ", program, " --help)") : "") << "\n";
  return bad_usage ? kBadUsage : kFailed;
}

}  // namespace tandem::cli
