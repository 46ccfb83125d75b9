// Mirror: for every buffer that the subject gave out, one of the same size on the judge, and the
// way from one to the other.
#ifndef TANDEM_TESTS_KERNELS_CHECKING_MIRROR_H_
#define TANDEM_TESTS_KERNELS_CHECKING_MIRROR_H_

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "kernels/backend.h"
#include "kernels/ops.h"

namespace tandem::kernels::checking {

// Used by one thread, like the backends.
class Mirror {
 public:
  // Takes both buffers over; the one returned stands for the subject's and ends both.
  static Buffer Add(const std::shared_ptr<Mirror>& mirror, Buffer subject, Buffer judge) {
    std::byte* const data = subject.data();
    const size_t bytes = subject.bytes();
    mirror->pairs_[data] = {std::move(subject), std::move(judge)};
    return Buffer(data, bytes,
                  [mirror](void* p) { mirror->pairs_.erase(static_cast<std::byte*>(p)); });
  }

  void AddWeight(const Weight& subject, const Weight& judge) { weights_[subject.data] = judge; }

  // The judge's address for one of the subject's; memory that is not a backend's (a mapped file) is
  // the same for both.
  template <typename T>
  T* Judge(T* subject) const {
    auto* const address = static_cast<const std::byte*>(static_cast<const void*>(subject));
    auto it = pairs_.upper_bound(address);
    if (subject == nullptr || it == pairs_.begin()) return subject;
    const auto& [base, pair] = *--it;
    const auto offset = static_cast<size_t>(address - base);
    if (offset > pair.subject.bytes()) return subject;
    return reinterpret_cast<T*>(pair.judge.data() + offset);
  }

  Weight Judge(const Weight& subject) const {
    const auto it = weights_.find(subject.data);
    if (it == weights_.end()) return subject;
    Weight judge = subject;
    judge.data = it->second.data;
    judge.row_stride_bytes = it->second.row_stride_bytes;
    judge.matrix_stride_bytes = it->second.matrix_stride_bytes;
    judge.panel_rows = it->second.panel_rows;
    return judge;
  }

  // Calls visit(subject data, bytes) for every buffer.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [base, pair] : pairs_) visit(base, pair.subject.bytes());
  }

 private:
  struct Pair {
    Buffer subject;
    Buffer judge;
  };
  std::map<const std::byte*, Pair> pairs_;
  std::map<const void*, Weight> weights_;
};

}  // namespace tandem::kernels::checking

#endif  // TANDEM_TESTS_KERNELS_CHECKING_MIRROR_H_
