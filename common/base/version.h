// The build's version, as printed by --version and reported by a worker.
#ifndef TANDEM_COMMON_BASE_VERSION_H_
#define TANDEM_COMMON_BASE_VERSION_H_

#include <string>

namespace tandem {

// "0.1.0 (commit 1a2b3c4d5e6f)"; "..., modified" after the commit if tracked files differ from it.
// Programs not linked with --stamp (tests and the programs they run), or outside a git checkout,
// print "0.1.0 (unknown commit)".
std::string BuildVersion();

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_VERSION_H_
