#include "kernels/backend.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/tensor/type.h"

namespace tandem::kernels {

absl::Status Backend::UseActivations(tensor::Type type) {
  if (type == tensor::Type::kF32) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "backend ", Sv(name()), " computes with F32 activations, not with ", Sv(tensor::Name(type))));
}

bool Backend::WantsKeyColumns(const KvPages&) const { return false; }

uint64_t Backend::PlacedBytes(const Weight& weight) const {
  return tensor::RowBytes(weight.type, weight.cols) * weight.rows * weight.count;
}

void Backend::PoisonBetweenSteps(std::span<std::byte>) {}

bool Backend::Done(Ticket) { return true; }

absl::Status Backend::SubmitAndWait(Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(const Ticket ticket, Submit(deadline));
  return Wait(ticket);
}

}  // namespace tandem::kernels
