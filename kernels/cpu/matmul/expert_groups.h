// Which rows of activations each expert multiplies: the choices of a step, sorted by expert.
#ifndef TANDEM_KERNELS_CPU_MATMUL_EXPERT_GROUPS_H_
#define TANDEM_KERNELS_CPU_MATMUL_EXPERT_GROUPS_H_

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::cpu {

// A choice is one of the tokens * top_k entries of ids. The slots of expert e (counted from the
// rank's first) are [first_slot[e], first_slot[e + 1]), its choices in ascending order.
// Example: ids 1 0 | 1 2, experts 0 and 1 -> first_slot 0 1 3, choice_of 1 0 2, slot_of 1 0 2 -1.
struct ExpertGroups {
  int32_t* first_slot;  // (experts + 1)
  int32_t* choice_of;   // (choices), by slot; as many as there are slots
  int32_t* slot_of;     // (choices); -1: another rank's expert

  static size_t Bytes(uint32_t experts, size_t choices) {
    return (experts + 1 + 2 * choices) * sizeof(int32_t);
  }

  // In `memory` of that size.
  static ExpertGroups At(std::byte* memory, uint32_t experts, size_t choices) {
    auto* const first = reinterpret_cast<int32_t*>(memory);
    return {first, first + experts + 1, first + experts + 1 + choices};
  }

  // Sorts by counting.
  void Fill(const int32_t* ids, size_t choices, uint32_t expert_begin, uint32_t experts) const {
    const auto local = [&](size_t choice) {
      const int64_t expert = int64_t{ids[choice]} - expert_begin;
      return expert >= 0 && expert < experts ? static_cast<int32_t>(expert) : -1;
    };
    for (uint32_t e = 0; e <= experts; ++e) first_slot[e] = 0;
    for (size_t i = 0; i < choices; ++i) {
      if (local(i) >= 0) ++first_slot[local(i) + 1];
    }
    for (uint32_t e = 0; e < experts; ++e) first_slot[e + 1] += first_slot[e];
    // During assignment first_slot[e] is the next free slot of e; afterwards all shift by one.
    for (size_t i = 0; i < choices; ++i) {
      const int32_t expert = local(i);
      slot_of[i] = expert < 0 ? -1 : first_slot[expert]++;
      if (expert >= 0) choice_of[slot_of[i]] = static_cast<int32_t>(i);
    }
    for (uint32_t e = experts; e > 0; --e) first_slot[e] = first_slot[e - 1];
    first_slot[0] = 0;
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_EXPERT_GROUPS_H_
