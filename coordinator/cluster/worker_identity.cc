#include "coordinator/cluster/worker_identity.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tandem::coordinator {
namespace {

constexpr char kAnyRank[] = "tandem-worker";
constexpr char kOneRank[] = "tandem-worker-";

}  // namespace

absl::StatusOr<WorkerIdentity> WorkerIdentity::FromNames(const std::vector<std::string>& names) {
  std::optional<int> rank;
  for (const std::string& name : names) {
    if (name == kAnyRank) return WorkerIdentity{};
    absl::string_view digits = name;
    int number = 0;
    if (absl::ConsumePrefix(&digits, kOneRank) &&
        std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
        absl::SimpleAtoi(digits, &number)) {
      rank = number;
    }
  }
  if (rank.has_value()) return WorkerIdentity{rank};
  return absl::PermissionDeniedError(
      absl::StrCat("the certificate is not a worker's: none of its names is ", kAnyRank, " or ",
                   kOneRank, "RANK"));
}

absl::StatusOr<std::optional<int>> WorkerIdentity::Admit(std::optional<int> asked) const {
  if (!rank.has_value() || asked == rank) return asked;
  if (!asked.has_value()) return rank;
  return absl::PermissionDeniedError(
      absl::StrCat("the certificate is of rank ", *rank, ", the worker asks for rank ", *asked));
}

}  // namespace tandem::coordinator
