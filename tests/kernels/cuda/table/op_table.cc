#include "tests/kernels/cuda/table/op_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "tests/kernels/cuda/table/timer.h"

namespace tandem::kernels {
namespace {

constexpr size_t kMaxVariants = 32;
constexpr size_t kCalls = 32;  // at least, in the graph
constexpr int kWarmUps = 2;
constexpr size_t kRuns = 7;

absl::Status Finish(Backend& backend) {
  return backend.SubmitAndWait(Deadline::After(std::chrono::minutes(1)));
}

absl::Status Plan(Backend& backend, const EncodeCase& encode) {
  backend.BeginEncode(EncodeMode::kPlan);
  encode(backend, 0);
  return backend.FinishPlan().status();
}

absl::StatusOr<double> MedianReplay(Backend& backend, const Graph& graph) {
  auto& stream = dynamic_cast<DeviceStream&>(backend);
  cuda::Timer timer(static_cast<cudaStream_t>(stream.handle()));
  TANDEM_RETURN_IF_ERROR(timer.Open());
  std::array<double, kRuns> seconds{};
  for (int run = -kWarmUps; run < static_cast<int>(kRuns); ++run) {
    backend.BeginEncode(EncodeMode::kRun);
    TANDEM_RETURN_IF_ERROR(timer.Start());
    backend.graphs()->Replay(graph);
    TANDEM_RETURN_IF_ERROR(timer.Stop());
    TANDEM_RETURN_IF_ERROR(Finish(backend));
    TANDEM_ASSIGN_OR_RETURN(const double took, timer.Seconds());
    if (run >= 0) seconds[static_cast<size_t>(run)] = took;
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRuns / 2];
}

}  // namespace

TableSizes ToySizes() {
  TableSizes s;
  s.hidden = 256;
  s.ffn = 512;
  s.heads = 4;
  s.kv_heads = 2;
  s.head_dim = 64;
  s.vocab = 1000;
  s.moe_hidden = 256;
  s.moe_ffn = 256;
  s.experts = 4;
  s.experts_chosen = 2;
  s.mla_heads = 2;
  s.mla_head_dim = 32;
  s.mla_dim = 96;
  s.mla_value_dim = 64;
  s.batches = {1, 2};
  s.product_tokens = {1, 9};
  s.contexts = {20};
  s.prefill = 3;
  s.cold_bytes = 1;
  s.copy_bytes = 1 << 16;
  s.matrix = 32;
  return s;
}

std::vector<OpCase> AllCases(const TableSizes& sizes) {
  std::vector<OpCase> all;
  for (auto* const part : {&ProductCases, &QkvCases, &AttentionCases, &RowCases, &SamplingCases}) {
    auto cases = part(sizes);
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

absl::StatusOr<double> TimeCase(const OpCase& one, const TableSizes& sizes,
                                const BackendMaker& make_backend) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, make_backend());
  const auto wanted = static_cast<size_t>(static_cast<double>(sizes.cold_bytes) / one.bytes) + 1;
  const size_t variants = std::min(wanted, kMaxVariants);
  const size_t calls = sizes.cold_bytes <= 1 ? 1 : std::max(variants, kCalls);
  CaseMemory memory(*backend);
  const EncodeCase encode = one.prepare(memory, variants);
  TANDEM_RETURN_IF_ERROR(Plan(*backend, encode));
  // Once outside the graph: what is loaded at a first launch can't be captured.
  backend->BeginEncode(EncodeMode::kRun);
  encode(*backend, 0);
  TANDEM_RETURN_IF_ERROR(Finish(*backend));
  backend->BeginEncode(EncodeMode::kCapture);
  for (size_t i = 0; i < calls; ++i) encode(*backend, i % variants);
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, backend->graphs()->Finish());
  TANDEM_ASSIGN_OR_RETURN(const double seconds, MedianReplay(*backend, *graph));
  return seconds / static_cast<double>(calls);
}

absl::Status EncodeOnly(const OpCase& one, const BackendMaker& make_backend) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, make_backend());
  CaseMemory memory(*backend);
  const EncodeCase encode = one.prepare(memory, 1);
  TANDEM_RETURN_IF_ERROR(Plan(*backend, encode));
  backend->BeginEncode(EncodeMode::kCapture);
  encode(*backend, 0);
  return backend->graphs()->Finish().status();
}

double FloorSeconds(const OpCase& one, const cuda::Ceilings& ceilings) {
  return std::max(one.bytes / ceilings.bytes_per_s(), one.flops / ceilings.flops_per_s);
}

std::string CeilingsText(const cuda::Ceilings& c) {
  return absl::StrFormat(
      "read %.0f GB/s, copy %.0f GB/s (read and written), BF16 products %.0f TFLOP/s\n",
      c.read_bytes_per_s * 1e-9, c.copy_bytes_per_s * 1e-9, c.flops_per_s * 1e-12);
}

std::string TableHeader() {
  return absl::StrFormat("%-24s %-52s %10s %10s %8s %9s %6s\n", "op", "shape", "us", "floor us",
                         "GB/s", "TFLOP/s", "of it");
}

std::string TableRow(const OpCase& one, double seconds, const cuda::Ceilings& ceilings) {
  const double floor = FloorSeconds(one, ceilings);
  return absl::StrFormat("%-24s %-52s %10.2f %10.2f %8.0f %9.1f %5.0f%%\n", one.op, one.shape,
                         seconds * 1e6, floor * 1e6, one.bytes / seconds * 1e-9,
                         one.flops / seconds * 1e-12, 100 * floor / seconds);
}

}  // namespace tandem::kernels
