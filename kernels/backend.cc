#include "kernels/backend.h"

#include "common/base/check.h"

namespace tandem::kernels {

absl::StatusOr<std::unique_ptr<Graph>> Backend::FinishCapture() {
  return absl::UnimplementedError("graphs are for devices");
}

void Backend::Replay(const Graph&) { TANDEM_CHECK(false) << "graphs are for devices"; }

}  // namespace tandem::kernels
