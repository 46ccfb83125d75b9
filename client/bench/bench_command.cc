#include "client/bench/bench_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>

#include "client/bench/bench_options.h"
#include "client/bench/bench_report.h"
#include "client/bench/measure.h"
#include "common/base/status.h"
#include "coordinator/server/bring_up.h"
#include "coordinator/server/model_file.h"

namespace tandem::client {
namespace {

constexpr uint64_t kSeed = 1;  // of the prompts: every run measures the same
constexpr auto kShutdownTimeout = std::chrono::seconds(5);

absl::Status MeasureAll(coordinator::EngineCore& engine, BenchReport& report) {
  const BenchOptions& options = report.options;
  Measure measure(engine, kSeed);
  if (options.prefill > 0) {
    TANDEM_ASSIGN_OR_RETURN(report.prefill, measure.Prefill(options.prefill, options.repetitions));
  }
  if (options.decode == 0) return absl::OkStatus();
  for (const uint32_t batch : options.batches) {
    TANDEM_ASSIGN_OR_RETURN(Measurement measurement,
                            measure.Decode(batch, options.decode, options.repetitions));
    report.decode.emplace_back(batch, measurement);
  }
  return absl::OkStatus();
}

absl::Status Bench(BenchOptions options) {
  TANDEM_ASSIGN_OR_RETURN(const coordinator::ModelFile model,
                          coordinator::OpenModelFile(options.worker));
  TANDEM_RETURN_IF_ERROR(FitLimits(model.spec.context_length, options));
  TANDEM_ASSIGN_OR_RETURN(coordinator::Workers workers,
                          coordinator::BringUp(options.worker, model, [] { return false; }));
  BenchReport report{.options = options,
                     .architecture = model.spec.architecture,
                     .quantization = model.spec.quantization,
                     .threads_per_worker = workers.threads_per_worker,
                     .prefill = {},
                     .decode = {}};
  const std::unique_ptr<coordinator::EngineCore> engine = workers.MakeCore();
  const absl::Status measured = MeasureAll(*engine, report);
  workers.supervisor->Shutdown("the benchmark is over", Deadline::After(kShutdownTimeout));
  TANDEM_RETURN_IF_ERROR(measured);
  std::cout << (options.json ? ToJson(report) + "\n" : FormatReport(report));
  return absl::OkStatus();
}

void AddFlags(CLI::App& command, BenchOptions& options) {
  coordinator::WorkerOptions& worker = options.worker;
  command.add_option("--model,-m", worker.model, "GGUF file")->required();
  command.add_option("--device", worker.device, "cpu or cuda")->capture_default_str();
  command
      .add_option("--gpu-memory-utilization", worker.gpu_memory_utilization,
                  "cuda: the part of a GPU's memory that a worker may plan with")
      ->capture_default_str();
  command.add_flag("--enforce-eager", worker.enforce_eager, "cuda: no graphs");
  command.add_option("--cpu-kernels", worker.cpu_kernels, "auto, reference, avx2 or avx512")
      ->capture_default_str();
  command
      .add_option("--tensor-parallel-size,--tp", worker.tensor_parallel_size, "worker processes")
      ->capture_default_str();
  command.add_option("--threads-per-worker", worker.threads_per_worker, "0: cores / ranks")
      ->capture_default_str();
  command.add_option("--prefill", options.prefill, "tokens of a prompt; 0: not measured")
      ->capture_default_str();
  command.add_option("--decode", options.decode, "tokens that a sequence decodes; 0: not measured")
      ->capture_default_str();
  command.add_option("--batch", options.batches, "sequences that decode together")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--repetitions,-r", options.repetitions, "the median counts, after a warm-up")
      ->capture_default_str();
  command.add_option("--block-size", worker.block_size, "tokens of a KV block")
      ->capture_default_str();
  command.add_option("--kv-cache-type", worker.kv_cache_type, "f32, f16, bf16 or q8_0")
      ->capture_default_str();
  command.add_option("--step-transport", worker.step_transport, "shm or grpc")
      ->capture_default_str();
  command.add_option("--step-timeout", worker.step_timeout_s, "seconds that a step may take")
      ->capture_default_str();
  command.add_option("--worker-binary", worker.worker_binary,
                     "path of tandem_worker (default: beside this program)");
  command.add_flag("--json", options.json, "for programs");
}

}  // namespace

void AddBenchCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "prefill and decode speed through real workers, without a server");
  AddFlags(*command, *options);
  command->footer(
      "Prefill is a prompt in one step; decode is the tokens of all sequences over the time of "
      "the\n"
      "steps that only decode, with a short context. Token ids are random, sampling is greedy, "
      "the\n"
      "prefix cache is off.\n"
      "Examples:\n"
      "  tandem bench --model models/demo.gguf --device cpu --threads-per-worker 2\n"
      "  tandem bench --model m.gguf --tensor-parallel-size 2 --threads-per-worker 1 \\\n"
      "      --prefill 512 --decode 32 --batch 1,4,8,16,32 --json");
  command->callback([options, &action] { action = [options] { return Bench(*options); }; });
}

}  // namespace tandem::client
