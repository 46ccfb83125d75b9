#include "kernels/backend.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"

namespace tandem::kernels {

absl::Status Backend::UseActivations(tensor::Type type) {
  if (type == tensor::Type::kF32) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "backend ", Sv(name()), " computes with F32 activations, not with ", Sv(tensor::Name(type))));
}

void Backend::PoisonBetweenSteps(std::span<std::byte>) {}

bool Backend::Done(Ticket) { return true; }

absl::Status Backend::SubmitAndWait(Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(const Ticket ticket, Submit(deadline));
  return Wait(ticket);
}

}  // namespace tandem::kernels
