#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/blocks.h"
#include "common/tensor/f16.h"
#include "tests/kernels/cuda/table/case_memory.h"
#include "tests/kernels/cuda/table/random_rows.h"
#include "tests/worker/step_bench/bench_runner.h"
#include "tests/worker/step_bench/sections.h"

namespace tandem::worker {
namespace {

using kernels::cuda::BenchBackend;

// Of the memory that is free, for the large pool of KV pages.
constexpr double kPoolShare = 0.75;
constexpr float kTolerance = 2e-3f;  // of the largest value

float Largest(const std::vector<float>& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  return most;
}

// The rows of the weight repeat, and so must the product's.
absl::Status CheckRepeats(const std::vector<float>& y, uint32_t rows) {
  const float allowed = kTolerance * Largest(y);
  if (!(allowed > 0)) return absl::InternalError("the product is 0");
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t row = i % rows;
    const float expected = y[i - row + row % kernels::kDifferentRows];
    if (std::fabs(y[i] - expected) <= allowed) continue;
    return absl::InternalError(
        absl::StrCat("row ", row, " of token ", i / rows, " is ", y[i], ", needed ", expected));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> RunOp(BenchBackend& backend, const kernels::Op& op,
                                         const float* out, size_t count) {
  backend.BeginEncode(kernels::EncodeMode::kPlan);
  backend.Encode(op);
  TANDEM_RETURN_IF_ERROR(backend.FinishPlan().status());
  std::vector<float> values(count);
  backend.BeginEncode(kernels::EncodeMode::kRun);
  backend.Encode(op);
  backend.Download(values.data(), out, count * sizeof(float));
  TANDEM_RETURN_IF_ERROR(backend.SubmitAndWait(Deadline::After(std::chrono::minutes(1))));
  return values;
}

// Products with a weight of at least `bytes`.
absl::Status CheckLargeWeight(BenchBackend& backend, tensor::Type type, uint32_t cols,
                              uint64_t bytes) {
  const auto rows = static_cast<uint32_t>(bytes / tensor::RowBytes(type, cols)) + 1;
  constexpr uint32_t kTokens[] = {1, 16};  // of the kernels for few rows, and for many
  kernels::CaseMemory memory(backend);
  kernels::MatMulParams p{};
  p.x = memory.Floats(size_t{kTokens[1]} * cols);
  p.x_stride = cols;
  p.num_projections = 1;
  auto* const y = static_cast<float*>(memory.Room(size_t{kTokens[1]} * rows * sizeof(float)));
  p.projections[0] = {memory.Matrices(type, rows, cols, 1), nullptr, y, rows};
  for (const uint32_t tokens : kTokens) {
    p.tokens = tokens;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<float> values,
                            RunOp(backend, p, y, size_t{tokens} * rows));
    TANDEM_RETURN_IF_ERROR(Annotate(CheckRepeats(values, rows), absl::StrCat(tokens, " tokens")));
  }
  return absl::OkStatus();
}

absl::Status CheckLargeWeights(bool toy) {
  const uint64_t bytes = toy ? 70000 : (uint64_t{9} << 29);  // 4.5 GiB
  for (const tensor::Type type : {tensor::Type::kBF16, tensor::Type::kQ4_K}) {
    TANDEM_ASSIGN_OR_RETURN(const auto backend, MakeBenchBackend(0));
    TANDEM_RETURN_IF_ERROR(Annotate(
        CheckLargeWeight(static_cast<BenchBackend&>(*backend), type, toy ? 256 : 4096, bytes),
        std::string(tensor::Name(type))));
  }
  return absl::OkStatus();
}

// Attention of one token over `context` positions whose keys are 0, so that all weigh the same: the
// mean of values that are 0 in the first half and 1 in the second.
absl::Status CheckLongAttention(uint32_t context) {
  constexpr uint32_t kHeads = 16, kKvHeads = 8, kDim = 128;
  TANDEM_ASSIGN_OR_RETURN(const auto backend, MakeBenchBackend(0));
  kernels::CaseMemory memory(*backend);
  const uint32_t blocks = kv::BlocksFor(context, kBenchBlockSize);
  const size_t block_values = size_t{kKvHeads} * kBenchBlockSize * kDim;
  std::vector<int32_t> table(blocks);
  std::vector<uint16_t> v(blocks * block_values);
  for (uint32_t i = 0; i < blocks; ++i) {
    table[i] = static_cast<int32_t>(blocks - 1 - i);
    const uint16_t value = tensor::FloatToHalf(2 * i < blocks ? 0.0f : 1.0f);
    std::fill_n(v.begin() + static_cast<ptrdiff_t>((blocks - 1 - i) * block_values), block_values,
                value);
  }
  kernels::AttentionParams p{};
  p.q = memory.Floats(kHeads * kDim);
  p.tokens = p.num_seqs = p.max_query_len = 1;
  p.query_offsets = memory.Put(std::vector<int32_t>{0, 1});
  p.context_lens = memory.Put(std::vector<int32_t>{static_cast<int32_t>(context)});
  p.block_tables = memory.Put(table);
  p.table_rows = memory.Put(std::vector<int32_t>{0});
  p.table_stride = blocks;
  p.pages = {.type = tensor::Type::kF16,
             .k = memory.Room(v.size() * sizeof(uint16_t)),
             .v = memory.Put(v),
             .num_blocks = blocks,
             .block_size = kBenchBlockSize,
             .kv_heads = kKvHeads,
             .head_dim = kDim,
             .value_dim = kDim};
  p.heads = kHeads;
  p.heads_per_kv = kHeads / kKvHeads;
  p.scale = 1;
  p.max_context_len = context;
  p.out = static_cast<float*>(memory.Room(kHeads * kDim * sizeof(float)));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<float> means,
                          RunOp(static_cast<BenchBackend&>(*backend), p, p.out, kHeads * kDim));
  for (const float mean : means) {
    if (std::fabs(mean - 0.5f) <= kTolerance) continue;
    return absl::InternalError(absl::StrCat("the mean of the values is ", mean, ", needed 0.5"));
  }
  return absl::OkStatus();
}

// Tokens of a few sequences that are prefilled and then decode.
absl::StatusOr<std::vector<TokenId>> Generate(BenchRunner& runner, uint32_t prompt) {
  std::vector<TokenId> tokens;
  std::vector<BenchSequence> sequences;
  for (uint32_t slot = 0; slot < 4; ++slot) {
    sequences.push_back({.slot = slot, .context_len = prompt, .query_len = prompt});
  }
  for (uint32_t i = 0; i < 4; ++i) {
    TANDEM_ASSIGN_OR_RETURN(const step::StepResult result,
                            runner.Run(runner.steps().Make(sequences, /*temperature=*/0)));
    for (const auto& row : result.rows) tokens.push_back(row.tokens[0]);
    for (BenchSequence& sequence : sequences) {
      ++sequence.context_len;
      sequence.query_len = 1;
    }
  }
  return tokens;
}

// A pool of nearly all memory gives what a small one gives.
absl::Status CheckLargePool(BenchDevice& device, bool toy) {
  const uint32_t prompt = toy ? 5 : 100;
  const uint32_t few = 4 * kv::BlocksFor(prompt + 4, kBenchBlockSize);
  BenchLimits limits{
      .max_seqs = 4, .max_tokens = 4 * prompt, .max_model_len = prompt + 4, .num_blocks = few};
  std::vector<TokenId> expected;
  {
    TANDEM_ASSIGN_OR_RETURN(const auto small, BenchRunner::Start(device, limits));
    TANDEM_ASSIGN_OR_RETURN(expected, Generate(*small, prompt));
  }
  const double bytes = device.cost().kv_bytes * kBenchBlockSize;
  limits.num_blocks =
      toy ? 4 * few
          : static_cast<uint32_t>(kPoolShare * static_cast<double>(device.free_bytes()) / bytes);
  std::printf("%u KV blocks, %.1f GB\n", limits.num_blocks, limits.num_blocks * bytes * 1e-9);
  std::fflush(stdout);
  TANDEM_ASSIGN_OR_RETURN(const auto large, BenchRunner::Start(device, limits));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<TokenId> found, Generate(*large, prompt));
  if (found == expected) return absl::OkStatus();
  return absl::InternalError("tokens differ from those of a small pool");
}

// The last token's logits by a prefill of two tokens and by a decode step.
absl::Status CheckLongContext(BenchDevice& device, uint32_t length) {
  TANDEM_ASSIGN_OR_RETURN(
      const auto runner,
      BenchRunner::Start(device, {.max_seqs = 1,
                                  .max_tokens = 2,
                                  .max_model_len = length,
                                  .num_blocks = kv::BlocksFor(length, kBenchBlockSize)}));
  step::StepDescriptor two = runner->steps().Make({{.context_len = length, .query_len = 2}}, 0);
  step::StepDescriptor one = runner->steps().Make({{.context_len = length}}, 0);
  one.tokens[0] = two.tokens[1];
  one.rows[0].wants |= step::kWantLogits;
  two.rows[0].wants |= step::kWantLogits;
  TANDEM_ASSIGN_OR_RETURN(const step::StepResult by_prefill, runner->Run(two));
  TANDEM_ASSIGN_OR_RETURN(const step::StepResult by_decode, runner->Run(one));
  const std::vector<float>& expected = by_prefill.rows[0].logits;
  const float allowed = 10 * kTolerance * Largest(expected);
  for (size_t i = 0; i < expected.size(); ++i) {
    const float found = by_decode.rows[0].logits[i];
    if (std::fabs(found - expected[i]) <= allowed) continue;
    return absl::InternalError(
        absl::StrCat("logit ", i, " is ", found, " by decode, ", expected[i], " by prefill"));
  }
  return absl::OkStatus();
}

// Many graphs: what they take.
absl::Status MeasureGraphs(const BenchContext& context, BenchDevice& device, uint32_t max_seqs) {
  const BenchLimits limits{
      .max_seqs = max_seqs, .max_tokens = max_seqs, .max_model_len = 64, .num_blocks = max_seqs};
  double seconds[2], mib[2];
  for (const bool graphs : {false, true}) {
    BenchLimits one = limits;
    one.graphs = graphs;
    const uint64_t before = device.free_bytes();
    TANDEM_ASSIGN_OR_RETURN(const auto runner, BenchRunner::Start(device, one));
    mib[graphs] = static_cast<double>(before - device.free_bytes()) / (1 << 20);
    seconds[graphs] = runner->start_seconds();
  }
  std::printf("graphs for up to %u sequences: %.2f s, %.0f MiB\n", max_seqs,
              seconds[1] - seconds[0], mib[1] - mib[0]);
  context.figures.Append(
      "graphs",
      {{"max_seqs", max_seqs}, {"seconds", seconds[1] - seconds[0]}, {"mib", mib[1] - mib[0]}});
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSizes(const BenchContext& context) {
  absl::Status failed;
  const auto note = [&](const std::string& what, const absl::Status& status) {
    const std::string verdict = status.ok() ? "right" : std::string(status.message());
    std::printf("%s: %s\n", what.c_str(), verdict.c_str());
    std::fflush(stdout);
    context.figures.Append("sizes", {{"what", what}, {"verdict", verdict}});
    if (!status.ok()) failed = Annotate(status, what);
  };
  note("weights above 4 GiB", CheckLargeWeights(context.toy));
  TANDEM_ASSIGN_OR_RETURN(const auto device,
                          BenchDevice::Load(context.toy ? ToyDense() : Qwen3_0_6B()));
  note("a large KV pool", CheckLargePool(*device, context.toy));
  const uint32_t length = device->shape().context;
  note(absl::StrCat("attention over ", length), CheckLongAttention(length));
  note(absl::StrCat("a step at ", length), CheckLongContext(*device, length));
  note("graphs", MeasureGraphs(context, *device, context.toy ? 4 : 512));
  return failed;
}

}  // namespace tandem::worker
