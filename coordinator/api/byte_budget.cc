#include "coordinator/api/byte_budget.h"

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

absl::StatusOr<ByteBudget::Hold> ByteBudget::Take(size_t bytes) {
  MutexLock lock(mutex_);
  if (bytes > most_ - taken_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a request of ", bytes, " bytes does not fit: requests of ", taken_,
                     " bytes are being answered, of at most ", most_, "; try again later"));
  }
  taken_ += bytes;
  return Hold(this, bytes);
}

void ByteBudget::GiveBack(size_t bytes) {
  MutexLock lock(mutex_);
  taken_ -= bytes;
}

}  // namespace tandem::coordinator
