// How products of a library are done, kept by shape: batches have any number of rows, so that a
// plan serves a bucket of numbers of rows. It is made for the largest of them.
//
//   BucketedPlans<Shape, Plan> plans;
//   absl::StatusOr<Plan*> plan = plans.Find(shape, rows, make, fits);
#ifndef TANDEM_KERNELS_CUDA_GEMM_PLANS_H_
#define TANDEM_KERNELS_CUDA_GEMM_PLANS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/statusor.h"

namespace tandem::kernels::cuda {

// The largest number of rows in the bucket of `rows`, of 1 to 2^31: powers of two, and 3/2 of them,
// as 4, 6, 8, 12, 16. So there are two buckets per bit of the largest step.
constexpr uint32_t BucketOf(uint32_t rows) {
  const uint32_t power = std::bit_ceil(rows);
  return rows <= power / 4 * 3 ? power / 4 * 3 : power;
}

// Shape is ordered and has everything but the number of rows. One thread.
template <typename Shape, typename Plan>
class BucketedPlans {
 public:
  // make(rows) returns a plan or an error; fits(plan, rows) says whether a bucket's plan does for
  // fewer rows. Where it doesn't, or has none, these rows get their own. The pointer is good until
  // the next call.
  template <typename Make, typename Fits>
  absl::StatusOr<Plan*> Find(const Shape& shape, uint32_t rows, Make make, Fits fits) {
    const uint32_t bucket = BucketOf(rows);
    if (bucket != rows) {
      const absl::StatusOr<Plan*> plan = FindExact(shape, bucket, make);
      if (plan.ok() && fits(**plan, rows)) return plan;
    }
    return FindExact(shape, rows, make);
  }
  // The plan made for that very number.
  template <typename Make>
  absl::StatusOr<Plan*> FindExact(const Shape& shape, uint32_t rows, Make make) {
    const std::pair key(shape, rows);
    if (const auto found = plans_.find(key); found != plans_.end()) return &found->second;
    absl::StatusOr<Plan> plan = make(rows);
    if (!plan.ok()) return plan.status();
    if (plans_.size() >= kMost) plans_.clear();
    return &plans_.emplace(key, *std::move(plan)).first->second;
  }

  size_t size() const { return plans_.size(); }

  // Then all of them are dropped.
  static constexpr size_t kMost = 16384;

 private:
  std::map<std::pair<Shape, uint32_t>, Plan> plans_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_GEMM_PLANS_H_
