// op_table: prints what the GPU reaches, and the table of op times. Arguments: only ops whose names
// begin with one of them.
#include <cstdio>
#include <memory>
#include <string>

#include "kernels/cuda/backend.h"
#include "tests/kernels/cuda/table/op_table.h"

namespace {

using tandem::kernels::OpCase;

bool Wanted(const OpCase& one, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (one.op.rfind(argv[i], 0) == 0) return true;
  }
  return argc == 1;
}

int Fail(const std::string& what, const absl::Status& status) {
  std::fprintf(stderr, "op_table: %s: %s\n", what.c_str(), std::string(status.message()).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  namespace kernels = tandem::kernels;
  const kernels::TableSizes sizes;
  const auto make = [] { return kernels::cuda::MakeCudaBackend(0); };
  if (auto backend = make(); !backend.ok()) return Fail("no GPU", backend.status());
  const auto ceilings = kernels::cuda::MeasureCeilings(sizes.copy_bytes, sizes.matrix);
  if (!ceilings.ok()) return Fail("ceilings", ceilings.status());
  std::fputs(kernels::CeilingsText(*ceilings).c_str(), stdout);
  std::fputs(kernels::TableHeader().c_str(), stdout);
  int failed = 0;
  for (const OpCase& one : kernels::AllCases(sizes)) {
    if (!Wanted(one, argc, argv)) continue;
    const auto seconds = kernels::TimeCase(one, sizes, make);
    if (seconds.ok()) {
      std::fputs(kernels::TableRow(one, *seconds, *ceilings).c_str(), stdout);
      std::fflush(stdout);
    } else {
      failed |= Fail(one.op + ", " + one.shape, seconds.status());
    }
  }
  return failed;
}
