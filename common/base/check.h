// TANDEM_CHECK: an invariant of our own code. Prints file, line, expression and message, then
// aborts. Never reached by anything untrusted: a file, a request or a peer gets an absl::Status
// instead.
#ifndef TANDEM_COMMON_BASE_CHECK_H_
#define TANDEM_COMMON_BASE_CHECK_H_

#include <sstream>
#include <string>

namespace tandem::internal {

// Collects the streamed message; the destructor prints and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* expression);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace tandem::internal

// TANDEM_CHECK(block < size) << "block " << block;
#define TANDEM_CHECK(condition)               \
  switch (0)                                  \
  case 0:                                     \
  default:                                    \
    if (__builtin_expect(!!(condition), 1)) { \
    } else                                    \
      ::tandem::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#define TANDEM_CHECK_OK(expr)                                                          \
  switch (0)                                                                           \
  case 0:                                                                              \
  default:                                                                             \
    if (const auto& _check_status = (expr); __builtin_expect(_check_status.ok(), 1)) { \
    } else                                                                             \
      ::tandem::internal::CheckFailure(__FILE__, __LINE__, #expr).stream() << _check_status

#endif  // TANDEM_COMMON_BASE_CHECK_H_
