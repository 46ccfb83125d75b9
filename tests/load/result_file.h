// Files of results: written whole or not at all.
#ifndef TANDEM_TESTS_LOAD_RESULT_FILE_H_
#define TANDEM_TESTS_LOAD_RESULT_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace tandem::load {

// Replaces the file at `path`. An error leaves it as it was and names it.
absl::Status WriteResultFile(const std::string& path, const std::string& content);

// Whether WriteResultFile could create its file now, so that a long run is not made for nothing.
// INVALID_ARGUMENT names `flag` and the path.
absl::Status CheckResultFile(const std::string& flag, const std::string& path);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_RESULT_FILE_H_
