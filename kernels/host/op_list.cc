#include "kernels/host/op_list.h"

#include <algorithm>
#include <utility>

namespace tandem::kernels::host {

void OpList::Clear(EncodeMode mode) {
  mode_ = mode;
  entries_.clear();
  units_.clear();
  works_.clear();
  scratch_ = {};
}

void OpList::AddWork(const char* name, Work work) {
  if (planning()) return;
  entries_.push_back({name, nullptr, 1, static_cast<uint32_t>(works_.size())});
  works_.push_back(std::move(work));
}

void OpList::ReserveScratch(size_t shared_bytes, size_t per_thread_bytes) {
  scratch_.shared = std::max(scratch_.shared, (shared_bytes + 63) / 64 * 64);
  scratch_.per_thread = std::max(scratch_.per_thread, (per_thread_bytes + 63) / 64 * 64);
}

uint32_t OpList::Grow(size_t bytes) {
  const size_t at = units_.size();
  units_.resize(at + (bytes + sizeof(Unit) - 1) / sizeof(Unit));
  return static_cast<uint32_t>(at);
}

}  // namespace tandem::kernels::host
