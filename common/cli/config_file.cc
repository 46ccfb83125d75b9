#include "common/cli/config_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <istream>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/config/text_form.h"

namespace tandem::cli {
namespace {

// The library's marks of where a section begins and ends.
bool IsMark(const CLI::ConfigItem& item) { return item.name == "++" || item.name == "--"; }

// What the library would read as several settings or as one: a list over several lines, whose lines
// it takes for names of flags, and a setting that is there twice.
absl::Status CheckLines(std::istream& in) {
  std::map<std::pair<std::string, std::string>, int> lines;  // by section and name
  std::string section;
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    const absl::string_view line =
        absl::StripAsciiWhitespace(absl::string_view(text).substr(0, text.find('#')));
    if (line.empty() || line.front() == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = std::string(line);
      continue;
    }
    const size_t equals = line.find('=');
    const std::string name(absl::StripAsciiWhitespace(line.substr(0, equals)));
    const absl::string_view value =
        equals == line.npos ? "" : absl::StripAsciiWhitespace(line.substr(equals + 1));
    if (!value.empty() && value.front() == '[' && value.back() != ']') {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": the list of ", config::Quoted(name),
                       " does not end on its line: each setting is one line"));
    }
    const auto [first, is_new] = lines.try_emplace({section, name}, number);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(config::Quoted(name), " is set twice: line ",
                                                     first->second, " and line ", number));
    }
  }
  return absl::OkStatus();
}

// The library strips quotes in pairs, so one that is left has no partner.
bool BeginsWithQuote(const std::string& value) {
  return !value.empty() && (value.front() == '"' || value.front() == '\'');
}

}  // namespace

absl::StatusOr<ConfigFile> ConfigFile::Read(const std::string& path, const std::string& flag) {
  std::error_code error;
  std::ifstream in(path);
  if (!in || std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat(flag, " ", path, ": cannot be read"));
  }
  TANDEM_RETURN_IF_ERROR(Annotate(CheckLines(in), absl::StrCat(flag, " ", path)));
  in.clear();
  in.seekg(0);
  ConfigFile file;
  file.path_ = path;
  for (CLI::ConfigItem& item : CLI::ConfigTOML().from_config(in)) {
    if (IsMark(item)) continue;
    if (std::any_of(item.inputs.begin(), item.inputs.end(), BeginsWithQuote)) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, ": ",
                                                     config::Quoted(item.fullname()),
                                                     " has a quote without its end on the line"));
    }
    file.entries_.push_back(
        {absl::StrJoin(item.parents, "."), std::move(item.name), std::move(item.inputs)});
  }
  return file;
}

const ConfigFile::Entry* ConfigFile::Find(std::string_view section, std::string_view name) const {
  for (const std::string_view where : {section, std::string_view()}) {
    const auto found = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) {
      return entry.section == where && entry.name == name;
    });
    if (found != entries_.rend()) return &*found;
  }
  return nullptr;
}

}  // namespace tandem::cli
