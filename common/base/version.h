// Which build this is: what --version prints and a worker says of itself.
#ifndef TANDEM_COMMON_BASE_VERSION_H_
#define TANDEM_COMMON_BASE_VERSION_H_

#include <string>

namespace tandem {

// "0.1.0 (commit 1a2b3c4d5e6f)"; "..., modified" after the commit where tracked files differ from
// it. Programs that were not linked with --stamp (tests and what they run), or outside a git
// checkout, say "0.1.0 (unknown commit)".
std::string BuildVersion();

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_VERSION_H_
