// CheckingBackend: runs every op on two backends and compares what they write, op by op. For tests
// and for hunting a wrong kernel: wrap the backend in doubt, and the step fails at the first op
// whose values differ, naming it.
//
// The caller sees the subject's memory; the judge works on a mirror of it, and takes over the
// subject's values after each comparison, so that small differences never add up. Weights are
// placed on both. Host work (collectives) runs once, on the subject's memory. Ops run when Wait is
// called, one at a time: order and results are a backend's, speed is not.
#ifndef TANDEM_TESTS_KERNELS_CHECKING_CHECKING_BACKEND_H_
#define TANDEM_TESTS_KERNELS_CHECKING_CHECKING_BACKEND_H_

#include <memory>

#include "kernels/backend.h"

namespace tandem::kernels::checking {

// Largest |subject - judge| allowed, in units of the judge's root mean square over the array that
// an op writes (and absolute where that is below 1e-6). Ops that move values or draw tokens must
// agree exactly.
struct Tolerances {
  float matmul = 0.05f;             // activations may be quantised to 8 bits
  float rounded_attention = 0.01f;  // over BF16 and Q8_0 pages: weights may be rounded to BF16
  float other = 1e-4f;              // rounding of float sums; pages one step of their type besides
};

// Wait returns INTERNAL naming op and values where the two differ.
std::unique_ptr<Backend> MakeCheckingBackend(std::unique_ptr<Backend> subject,
                                             std::unique_ptr<Backend> judge,
                                             const Tolerances& tolerances = {});

}  // namespace tandem::kernels::checking

#endif  // TANDEM_TESTS_KERNELS_CHECKING_CHECKING_BACKEND_H_
