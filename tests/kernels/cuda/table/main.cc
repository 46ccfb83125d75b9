// op_table: prints what the GPU reaches, and the table of op times. Arguments: --json FILE, --toy,
// and names: only rows of the table that
// begin with one of them, such as 'MatMul' or 'MatMul down, Q4_K, 1 x'.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tests/kernels/cuda/table/device_backend.h"
#include "tests/kernels/cuda/table/figures.h"
#include "tests/kernels/cuda/table/op_table.h"

namespace tandem::kernels {
namespace {

struct Arguments {
  std::string json{};
  bool toy = false;
  std::vector<std::string> ops{};
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string one = argv[i];
    if (one == "--json" && i + 1 < argc) {
      arguments.json = argv[++i];
    } else if (one == "--toy") {
      arguments.toy = true;
    } else {
      arguments.ops.push_back(one);
    }
  }
  return arguments;
}

bool Wanted(const OpCase& one, const std::vector<std::string>& ops) {
  const std::string name = one.op + ", " + one.shape;
  return ops.empty() || std::any_of(ops.begin(), ops.end(), [&](const std::string& begin) {
           return name.rfind(begin, 0) == 0;
         });
}

absl::Status PrintTable(const Arguments& arguments) {
  const TableSizes sizes = arguments.toy ? ToySizes() : TableSizes();
  Figures figures(arguments.json);
  TANDEM_RETURN_IF_ERROR(MakeDeviceBackend().status());
  TANDEM_ASSIGN_OR_RETURN(const cuda::Ceilings ceilings,
                          cuda::MeasureCeilings(sizes.copy_bytes, sizes.matrix));
  std::fputs(CeilingsText(ceilings).c_str(), stdout);
  std::fputs(TableHeader().c_str(), stdout);
  figures.Set("ceilings", {{"read_gb_s", ceilings.read_bytes_per_s * 1e-9},
                           {"copy_gb_s", ceilings.copy_bytes_per_s * 1e-9},
                           {"bf16_tflop_s", ceilings.flops_per_s * 1e-12}});
  absl::Status failed;
  for (const OpCase& one : AllCases(sizes)) {
    if (!Wanted(one, arguments.ops)) continue;
    const auto seconds = TimeCase(one, sizes, &MakeDeviceBackend);
    if (!seconds.ok()) {
      failed = Annotate(seconds.status(), one.op + ", " + one.shape);
      std::fprintf(stderr, "op_table: %s\n", std::string(failed.message()).c_str());
      continue;
    }
    std::fputs(TableRow(one, *seconds, ceilings).c_str(), stdout);
    std::fflush(stdout);
    figures.Append("ops", {{"op", one.op},
                           {"shape", one.shape},
                           {"us", *seconds * 1e6},
                           {"floor_us", FloorSeconds(one, ceilings) * 1e6}});
  }
  return failed;
}

}  // namespace
}  // namespace tandem::kernels

int main(int argc, char** argv) {
  const absl::Status status = tandem::kernels::PrintTable(tandem::kernels::Parse(argc, argv));
  if (status.ok()) return 0;
  std::fprintf(stderr, "op_table: %s\n", std::string(status.message()).c_str());
  return 1;
}
