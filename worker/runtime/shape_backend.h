// A backend that computes nothing and accepts any weight: encoding a step on it counts the step's
// activations before weights are loaded.
#ifndef TANDEM_WORKER_RUNTIME_SHAPE_BACKEND_H_
#define TANDEM_WORKER_RUNTIME_SHAPE_BACKEND_H_

#include <memory>

#include "kernels/backend.h"

namespace tandem::worker {

// For plan passes: calls that allocate or run return UNIMPLEMENTED.
std::unique_ptr<kernels::Backend> MakeShapeBackend();

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_SHAPE_BACKEND_H_
