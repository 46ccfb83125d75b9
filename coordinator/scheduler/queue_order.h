// The order in which sequences are served, and lists in that order.
#ifndef TANDEM_COORDINATOR_SCHEDULER_QUEUE_ORDER_H_
#define TANDEM_COORDINATOR_SCHEDULER_QUEUE_ORDER_H_

#include <algorithm>
#include <tuple>

#include "common/base/check.h"
#include "coordinator/scheduler/sequence.h"

namespace tandem::coordinator {

// By virtual arrival, then by arrival. Fixed from Enqueue on, so that a list stays in order.
inline bool ServedBefore(const Sequence& one, const Sequence& other) {
  return std::tie(one.virtual_arrival_us, one.handle) <
         std::tie(other.virtual_arrival_us, other.handle);
}

// Where `sequence` is or belongs in a list in that order.
template <typename List>
auto PlaceInOrder(List& list, const Sequence& sequence) {
  return std::lower_bound(
      list.begin(), list.end(), sequence,
      [](const Sequence* other, const Sequence& one) { return ServedBefore(*other, one); });
}

// The place of the first that is served after `sequence`, which need not be in the list.
template <typename List>
auto PlaceAfter(List& list, const Sequence& sequence) {
  return std::upper_bound(
      list.begin(), list.end(), sequence,
      [](const Sequence& one, const Sequence* other) { return ServedBefore(one, *other); });
}

template <typename List>
auto FindInOrder(List& list, const Sequence& sequence) {
  auto place = PlaceInOrder(list, sequence);
  TANDEM_CHECK(place != list.end() && *place == &sequence)
      << "sequence " << sequence.handle << " is not where its state says";
  return place;
}

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_QUEUE_ORDER_H_
