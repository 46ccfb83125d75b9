// step_bench: whole steps of a worker on a GPU or the emulated device, without a server and without
// a model file.
//   step_bench step|replay|ablation|sizes [--toy] [--json FILE] [--only SHAPE, for step]
#include <cstdio>
#include <string>

#include "common/base/log.h"
#include "common/base/status.h"
#include "tests/worker/step_bench/sections.h"

namespace {

using tandem::worker::BenchContext;

constexpr size_t kCeilingBytes = size_t{2} << 30;
constexpr uint32_t kCeilingMatrix = 8192;

struct Section {
  const char* name;
  absl::Status (*run)(const BenchContext& context);
};
constexpr Section kSections[] = {{"step", &tandem::worker::TimeSteps},
                                 {"replay", &tandem::worker::CheckPoisonedReplays},
                                 {"ablation", &tandem::worker::TimeAblations},
                                 {"sizes", &tandem::worker::CheckSizes}};

const Section* FindSection(const std::string& name) {
  for (const Section& section : kSections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

absl::Status Run(const Section& section, bool toy, const std::string& only,
                 const std::string& json) {
  tandem::kernels::Figures figures(json);
  BenchContext context{.toy = toy, .only = only, .figures = figures};
  TANDEM_ASSIGN_OR_RETURN(context.ceilings,
                          tandem::kernels::cuda::MeasureCeilings(toy ? 1 << 16 : kCeilingBytes,
                                                                 toy ? 32 : kCeilingMatrix));
  const auto& measured = context.ceilings;
  std::printf("read %.0f GB/s, copy %.0f GB/s, BF16 products %.0f TFLOP/s\n",
              measured.read_bytes_per_s * 1e-9, measured.copy_bytes_per_s * 1e-9,
              measured.flops_per_s * 1e-12);
  std::fflush(stdout);
  figures.Set("read_gb_s", measured.read_bytes_per_s * 1e-9);
  return section.run(context);
}

}  // namespace

int main(int argc, char** argv) {
  tandem::SetLogLevel(tandem::LogLevel::kWarning);
  const Section* section = nullptr;
  std::string json, only;
  bool toy = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--toy") {
      toy = true;
    } else if (argument == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else if (argument == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      section = FindSection(argument);
    }
  }
  if (section == nullptr) {
    std::fprintf(
        stderr,
        "usage: step_bench step|replay|ablation|sizes [--toy] [--json FILE] [--only SHAPE]\n");
    return 2;
  }
  const absl::Status status = Run(*section, toy, only, json);
  if (status.ok()) return 0;
  std::fprintf(stderr, "step_bench: %s\n", std::string(status.message()).c_str());
  return 1;
}
