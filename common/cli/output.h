// Standard output, checked: what cannot be written is an error, never lost in silence.
//
// One thread at a time.
#ifndef TANDEM_COMMON_CLI_OUTPUT_H_
#define TANDEM_COMMON_CLI_OUTPUT_H_

#include <ostream>
#include <string_view>

#include "absl/status/status.h"

namespace tandem::cli {

// Writes to `out` without flushing. DATA_LOSS with the system's reason ("stdout: No space left on
// device") if this write or an earlier one failed.
absl::Status Write(std::ostream& out, std::string_view text);
// Flushes `out`. DATA_LOSS as above.
absl::Status Flush(std::ostream& out);

// Write to standard output.
absl::Status Print(std::string_view text);

}  // namespace tandem::cli

#endif  // TANDEM_COMMON_CLI_OUTPUT_H_
