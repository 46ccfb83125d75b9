#include "common/cli/config_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/text_form.h"

namespace tandem::cli {
namespace {

// The library's marks of where a section begins and ends.
bool IsMark(const CLI::ConfigItem& item) { return item.name == "++" || item.name == "--"; }

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
