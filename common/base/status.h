// Status macros and constructors shared by every folder.
//
// `absl::Status` is for errors in files, requests and peers; TANDEM_CHECK (check.h) is for our own
// bugs.
#ifndef TANDEM_COMMON_BASE_STATUS_H_
#define TANDEM_COMMON_BASE_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expr` (an absl::Status) is not OK.
#define TANDEM_RETURN_IF_ERROR(expr)                      \
  do {                                                    \
    if (::absl::Status _status = (expr); !_status.ok()) { \
      return _status;                                     \
    }                                                     \
  } while (false)

#define TANDEM_STATUS_CONCAT_INNER_(a, b) a##b
#define TANDEM_STATUS_CONCAT_(a, b) TANDEM_STATUS_CONCAT_INNER_(a, b)

// TANDEM_ASSIGN_OR_RETURN(auto x, MakeX()): assigns the value of a StatusOr or returns its status.
#define TANDEM_ASSIGN_OR_RETURN(lhs, expr) \
  TANDEM_ASSIGN_OR_RETURN_IMPL_(TANDEM_STATUS_CONCAT_(_status_or_, __LINE__), lhs, expr)
#define TANDEM_ASSIGN_OR_RETURN_IMPL_(var, lhs, expr) \
  auto var = (expr);                                  \
  if (!var.ok()) return std::move(var).status();      \
  lhs = std::move(var).value()

namespace tandem {

// The same status with "`context`: " before its message: errors gain context as they propagate.
absl::Status Annotate(const absl::Status& status, const std::string& context);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_STATUS_H_
