// A backend that computes nothing and takes any weight: encoding a step on it counts the step's
// activations before there are weights to compute with.
#ifndef TANDEM_WORKER_RUNTIME_SHAPE_BACKEND_H_
#define TANDEM_WORKER_RUNTIME_SHAPE_BACKEND_H_

#include <memory>

#include "kernels/backend.h"

namespace tandem::worker {

// For plan passes: what allocates or runs answers UNIMPLEMENTED.
std::unique_ptr<kernels::Backend> MakeShapeBackend();

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_SHAPE_BACKEND_H_
