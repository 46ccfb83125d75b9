// The table of op times: every case on one device beside the time that the measured bandwidth and
// matrix rate of that device allow.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_OP_TABLE_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_OP_TABLE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "tests/kernels/cuda/table/ceilings.h"
#include "tests/kernels/cuda/table/op_case.h"

namespace tandem::kernels {

// A fresh backend for every case, so that a case's memory goes with it.
using BackendMaker = std::function<absl::StatusOr<std::unique_ptr<Backend>>()>;

std::vector<OpCase> AllCases(const TableSizes& sizes);

// Median seconds of one call, of several replays of a graph of many calls.
absl::StatusOr<double> TimeCase(const OpCase& one, const TableSizes& sizes,
                                const BackendMaker& make_backend);

// Sets the case up and records its calls, which run nothing.
absl::Status EncodeOnly(const OpCase& one, const BackendMaker& make_backend);

// The seconds that `ceilings` allow the case at best.
double FloorSeconds(const OpCase& one, const cuda::Ceilings& ceilings);

std::string CeilingsText(const cuda::Ceilings& ceilings);
std::string TableHeader();
// One line: op, shape, time, floor and how much of the ceiling was reached.
std::string TableRow(const OpCase& one, double seconds, const cuda::Ceilings& ceilings);

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_OP_TABLE_H_
