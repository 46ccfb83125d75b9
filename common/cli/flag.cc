#include "common/cli/flag.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"

namespace tandem::cli {
namespace {

CLI::Option* AddSwitch(CLI::App& app, const config::Field& field, const std::string& help) {
  const std::string names(field.meta().flag);
  const std::string off = absl::StrCat(",!--no-", Sv(field.name()));
  return app.add_flag(field.Text() == "true" ? names + off : names, help);
}

CLI::Option* AddValue(CLI::App& app, const config::Field& field, std::string help) {
  if (field.has_names()) absl::StrAppend(&help, help.empty() ? "" : ": ", field.Allowed());
  // The callback accepts all: values are checked by the field.
  CLI::Option* option = app.add_option(
      std::string(field.meta().flag), [](const CLI::results_t&) { return true; }, help);
  option->default_str(field.Text());
  option->type_name("");
  if (field.is_list()) {
    option->expected(CLI::detail::expected_max_vector_size);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  option->allow_extra_args(field.is_word_list());
  return option;
}

// Of several values, a field that is no list takes the last.
absl::Status Assign(config::Field& field, const std::vector<std::string>& texts) {
  if (!field.is_list()) return field.SetGiven(texts.back());
  field.Clear();
  for (const std::string& text : texts) TANDEM_RETURN_IF_ERROR(field.SetGiven(text));
  return absl::OkStatus();
}

absl::Status AssignFromFile(config::Field& field, const std::vector<std::string>& texts) {
  if (!field.is_list() && texts.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Sv(field.name()), "' has ", texts.size(),
                     " values, it must have one: a text with blanks or commas needs quotes"));
  }
  return Assign(field, texts);
}

}  // namespace

Flag::Flag(CLI::App& app, const config::Field& field)
    : field_(field), only_on_command_line_(!field.flag().starts_with("-")) {
  const std::string help(field.meta().help);
  option_ = field.is_switch() ? AddSwitch(app, field, help) : AddValue(app, field, help);
  if (!field.is_list()) option_->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if (!field.meta().required) return;
  // The library knows only the command line.
  if (only_on_command_line_) {
    option_->required();
  } else {
    option_->type_name("REQUIRED");
  }
}

absl::Status Flag::Resolve(const ConfigFile& file, std::string_view section) {
  if (!option_->results().empty()) return Assign(field_, option_->results());
  if (only_on_command_line_) return absl::OkStatus();
  const std::string variable = field_.variable();
  if (const char* text = std::getenv(variable.c_str()); text != nullptr && *text != '\0') {
    return Annotate(Assign(field_, {text}), variable);
  }
  if (const ConfigFile::Entry* entry = file.Find(section, name()); entry != nullptr) {
    return Annotate(AssignFromFile(field_, entry->values), absl::StrCat("--config ", file.path()));
  }
  if (!field_.meta().required) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Sv(field_.flag()), " is required"));
}

}  // namespace tandem::cli
