#include <chrono>
#include <memory>
#include <string>

#include "client/bench/bench_options.h"
#include "client/bench/bench_report.h"
#include "client/bench/measure.h"
#include "client/commands.h"
#include "client/json_forms.h"
#include "common/base/status.h"
#include "common/cli/output.h"
#include "coordinator/startup/bring_up.h"
#include "coordinator/startup/make_engine_config.h"
#include "coordinator/startup/model_file.h"

namespace tandem::client {
namespace {

constexpr uint64_t kSeed = 1;  // of the prompts: every run measures the same
constexpr auto kShutdownTimeout = std::chrono::seconds(5);

absl::Status MeasureAll(coordinator::EngineCore& engine, BenchReport& report) {
  const BenchOptions& options = report.options;
  Measure measure(engine, kSeed, options.context);
  if (options.prefill > 0) {
    TANDEM_ASSIGN_OR_RETURN(report.prefill, measure.Prefill(options.prefill, options.repetitions));
  }
  if (options.decode == 0) return absl::OkStatus();
  for (const uint32_t batch : options.batches) {
    if (options.draft_acceptance.empty()) {
      TANDEM_ASSIGN_OR_RETURN(Measurement measurement,
                              measure.Decode(batch, options.decode, options.repetitions));
      report.decode.emplace_back(batch, measurement);
    }
    for (const uint32_t percent : options.draft_acceptance) {
      TANDEM_ASSIGN_OR_RETURN(
          DraftMeasurement drafts,
          measure.Drafts(batch, options.decode, percent / 100.0, options.repetitions));
      report.drafts.push_back({batch, percent, drafts});
    }
  }
  return absl::OkStatus();
}

absl::Status Bench(BenchOptions options) {
  TANDEM_ASSIGN_OR_RETURN(const coordinator::ModelFile model,
                          coordinator::OpenModelFile(options.server.worker.model));
  TANDEM_RETURN_IF_ERROR(FitLimits(model.spec.context_length, options));
  if (const std::string why =
          coordinator::WhyNoDrafts(options.server.worker, options.server.scheduling, model.spec);
      !options.draft_acceptance.empty() && !why.empty()) {
    return absl::FailedPreconditionError(why);
  }
  TANDEM_ASSIGN_OR_RETURN(coordinator::Workers workers,
                          coordinator::BringUp(options.server, model, [] { return false; }));
  BenchReport report{.options = options,
                     .architecture = model.spec.architecture,
                     .quantization = model.spec.quantization,
                     .threads_per_worker = workers.config.device.threads,
                     .prefill = {},
                     .decode = {},
                     .drafts = {}};
  const std::unique_ptr<coordinator::EngineCore> engine = workers.MakeCore();
  const absl::Status measured = MeasureAll(*engine, report);
  workers.supervisor->Shutdown(absl::OkStatus(), Deadline::After(kShutdownTimeout));
  TANDEM_RETURN_IF_ERROR(measured);
  return cli::Print(options.json ? ToJson(report) + "\n" : FormatReport(report));
}

}  // namespace

void AddBenchCommand(cli::Command& program) {
  auto options = std::make_shared<BenchOptions>();
  cli::Command& command = program.AddCommand(
      "bench", "prefill and decode speed through real workers, without a server",
      "Prefill is a prompt in one step; decode is the tokens of all sequences over the time of "
      "the\n"
      "steps that only decode, after prompts of --context tokens. Token ids are random, sampling "
      "is\n"
      "greedy, the prefix cache is off, and --speculation unless it is asked for.\n"
      "--draft-acceptance measures it: sequences decode without guesses and then again, with\n"
      "guesses of their tokens of which that many are right.\n"
      "Examples:\n"
      "  tandem bench --model models/demo.gguf --device cpu --threads-per-worker 2\n"
      "  tandem bench --model m.gguf --tensor-parallel-size 2 --threads-per-worker 1 \\\n"
      "      --prefill 512 --decode 32 --batch 1,4,8,16,32 --json\n"
      "  tandem bench --model m.gguf --prefill 0 --decode 200 --batch 1 --draft-acceptance "
      "0,50,80,100");
  config::FieldList fields;
  options->ForEach(fields);
  options->server.ForEach(fields);
  command.Add(fields, {std::begin(kNotOfBench), std::end(kNotOfBench)});
  command.OnCheck([options] {
    config::Speculation& speculation = options->server.scheduling.speculation;
    if (speculation == config::Speculation::kAuto) {
      speculation = options->draft_acceptance.empty() ? config::Speculation::kOff
                                                      : config::Speculation::kNgram;
    }
    config::Complete(options->server);
    return CheckOptions(*options);
  });
  command.OnRun([options] { return Bench(*options); });
}

}  // namespace tandem::client
