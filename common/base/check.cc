#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tandem::internal {

CheckFailure::CheckFailure(const char* file, int line, const char* expression) {
  stream_ << file << ":" << line << ": check failed: " << expression << " ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace tandem::internal
