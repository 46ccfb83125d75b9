// ScatterRuns: a task per run. Shared by all backends on the host.
#include <algorithm>

#include "common/base/check.h"
#include "kernels/host/ops.h"

namespace tandem::kernels::host {
namespace {

void CopyRun(const ScatterRunsParams& p, const TaskContext& context) {
  const ScatterRun& run = p.runs[context.task];
  TANDEM_CHECK(run.from <= p.num_values && run.count <= p.num_values - run.from)
      << "run " << context.task << ": values " << run.from << " + " << run.count << " of "
      << p.num_values;
  TANDEM_CHECK(run.to <= p.out_size && run.count <= p.out_size - run.to)
      << "run " << context.task << ": elements " << run.to << " + " << run.count << " of "
      << p.out_size;
  std::copy_n(p.values + run.from, run.count, p.out + run.to);
}

}  // namespace

void EncodeOp(OpList& list, const ScatterRunsParams& params) {
  list.Add("scatter_runs", params.num_runs, &CopyRun, params);
}

}  // namespace tandem::kernels::host
