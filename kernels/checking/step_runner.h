// Runs recorded ops on the subject and the judge, one at a time, and compares what they wrote.
#ifndef TANDEM_KERNELS_CHECKING_STEP_RUNNER_H_
#define TANDEM_KERNELS_CHECKING_STEP_RUNNER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "kernels/backend.h"
#include "kernels/checking/compare.h"
#include "kernels/checking/mirror.h"

namespace tandem::kernels::checking {

using Encode = std::function<void(Backend&)>;

// One op as recorded. Host work and copies have no outputs to compare.
struct Step {
  const char* name;
  Encode subject;
  Encode judge;  // empty: only the subject runs it
  std::vector<Output> outputs;
  bool mirror_all = false;  // afterwards all memory may have changed
};

// Borrows all it is given.
class StepRunner {
 public:
  StepRunner(Backend& subject, Backend& judge, const Mirror& mirror, Deadline deadline)
      : subject_(subject), judge_(judge), mirror_(mirror), deadline_(deadline) {}

  // The error of either backend as it is; INTERNAL, with `where` in front, if their outputs differ.
  // Afterwards the judge has the subject's values.
  absl::Status Run(const Step& step, const std::string& where);

 private:
  absl::Status CompareOutput(const Output& output);
  // The subject's values, and what lies between their rows, become the judge's.
  absl::Status MirrorOutput(const Output& output);
  // The subject's `bytes` at `data` become the judge's.
  absl::Status MirrorBytes(const void* data, const std::vector<std::byte>& bytes);
  std::vector<std::byte> Read(Backend& backend, const void* data, size_t size,
                              absl::Status* status);
  absl::Status RunOn(Backend& backend, const Encode& encode);

  Backend& subject_;
  Backend& judge_;
  const Mirror& mirror_;
  const Deadline deadline_;
};

}  // namespace tandem::kernels::checking

#endif  // TANDEM_KERNELS_CHECKING_STEP_RUNNER_H_
