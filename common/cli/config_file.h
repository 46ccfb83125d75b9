// ConfigFile: flags in a TOML or INI file, as the parsing library reads them: "name = value" lines,
// and [sections] for the flags of one subcommand.
#ifndef TANDEM_COMMON_CLI_CONFIG_FILE_H_
#define TANDEM_COMMON_CLI_CONFIG_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem::cli {

// Immutable. A default-constructed one has no entries.
class ConfigFile {
 public:
  struct Entry {
    std::string section;  // empty before the first one
    std::string name;     // of the flag, without dashes
    std::vector<std::string> values;
  };

  ConfigFile() = default;
  // NOT_FOUND if the file cannot be read, INVALID_ARGUMENT for a quote or a list without its end on
  // the line and for a setting that is there twice; with the path, and the flag that names it.
  static absl::StatusOr<ConfigFile> Read(const std::string& path,
                                         const std::string& flag = "--config");

  const std::string& path() const { return path_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // The last entry of this name in the section, else the last one before all sections; or null.
  const Entry* Find(std::string_view section, std::string_view name) const;

 private:
  std::string path_;
  std::vector<Entry> entries_;
};

}  // namespace tandem::cli

#endif  // TANDEM_COMMON_CLI_CONFIG_FILE_H_
