#include "tests/load/options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "tests/load/objectives.h"

namespace tandem::load {
namespace {

constexpr double kMaxLength = 1 << 24;

void VisitRequests(DatasetOptions& dataset, config::FieldList& visit) {
  visit(dataset.name, {.flag = "--dataset-name", .help = "where prompts come from"});
  visit(dataset.path, {.flag = "--dataset-path",
                       .help = "sharegpt: its JSON file; replay: JSON lines with `timestamp` (ms) "
                               "and `output_length`,\nand `input_length` (with `hash_ids` of 512 "
                               "tokens each, if prompts share prefixes),\n`prompt` or "
                               "`prompt_token_ids`"});
  visit(dataset.num_prompts, {.flag = "--num-prompts",
                              .help = "requests of a run; of a file, at most",
                              .least = 1,
                              .most = 1e8});
  visit(dataset.random_input_len, {.flag = "--random-input-len",
                                   .help = "random: tokens of a prompt",
                                   .least = 1,
                                   .most = kMaxLength});
  visit(dataset.random_output_len, {.flag = "--random-output-len",
                                    .help = "random: tokens of an answer",
                                    .least = 1,
                                    .most = kMaxLength});
  visit(dataset.random_range_ratio,
        {.flag = "--random-range-ratio",
         .help = "random: lengths are uniform in [len * (1 - R), len * (1 + R)], R in [0, 1)"});
  visit(dataset.num_prefixes, {.flag = "--prefix-repetition-num-prefixes",
                               .help = "prefix: different prefixes",
                               .least = 1,
                               .most = 1e6});
  visit(dataset.prefix_len, {.flag = "--prefix-repetition-prefix-len",
                             .help = "prefix: tokens that prompts share",
                             .least = 1,
                             .most = kMaxLength});
  visit(dataset.suffix_len, {.flag = "--prefix-repetition-suffix-len",
                             .help = "prefix: tokens of its own in each prompt",
                             .least = 1,
                             .most = kMaxLength});
  visit(dataset.prefix_output_len, {.flag = "--prefix-repetition-output-len",
                                    .help = "prefix: tokens of an answer",
                                    .least = 1,
                                    .most = kMaxLength});
  visit(dataset.sharegpt_output_len, {.flag = "--sharegpt-output-len",
                                      .help = "sharegpt: tokens of every answer; empty: the file's",
                                      .least = 1,
                                      .most = kMaxLength});
  visit(dataset.vocab_size, {.flag = "--vocab-size",
                             .help = "random ids are below this; 0: the model's; openai: 8192",
                             .least = 0,
                             .most = 1 << 24});
  visit(dataset.seed, {.flag = "--seed", .help = "of everything that is random"});
}

absl::Status Invalid(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status CheckFraction(const char* flag, double fraction) {
  if (fraction >= 0 && fraction <= 1) return absl::OkStatus();
  return Invalid(absl::StrCat(flag, " must be from 0 to 1, found ", fraction));
}

absl::Status CheckArrivals(const LoadOptions& options) {
  if (options.request_rates.empty()) return Invalid("--request-rate must have a value");
  for (const double rate : options.request_rates) {
    if (!(rate > 0)) {
      return Invalid(absl::StrCat("--request-rate must be positive or inf, found ", rate));
    }
  }
  if (!(options.burstiness > 0)) {
    return Invalid(
        absl::StrCat("--burstiness must be positive or inf, found ", options.burstiness));
  }
  if (options.sweep && (options.request_rates.size() > 1 || options.max_concurrencies.size() > 1)) {
    return Invalid("--sweep chooses the rates: give one --request-rate and --max-concurrency");
  }
  const bool has_times = options.dataset.name == DatasetKind::kReplay && options.dataset.self_timed;
  if (has_times && (options.sweep || options.request_rates != std::vector{kUnlimited})) {
    return Invalid("a replay has its own times: --request-rate and --sweep need --no-self-timed");
  }
  return absl::OkStatus();
}

absl::Status CheckDataset(const DatasetOptions& dataset) {
  const bool of_a_file =
      dataset.name == DatasetKind::kShareGpt || dataset.name == DatasetKind::kReplay;
  if (of_a_file && dataset.path.empty()) {
    return Invalid(
        absl::StrCat("--dataset-name ", config::NameOf(dataset.name), " needs --dataset-path"));
  }
  if (!of_a_file && !dataset.path.empty()) {
    return Invalid(
        absl::StrCat("--dataset-name ", config::NameOf(dataset.name), " reads no --dataset-path"));
  }
  if (!(dataset.random_range_ratio >= 0 && dataset.random_range_ratio < 1)) {
    return Invalid(absl::StrCat("--random-range-ratio must be at least 0 and below 1, found ",
                                dataset.random_range_ratio));
  }
  return absl::OkStatus();
}

absl::Status CheckSimulation(const LoadOptions& options) {
  if (options.simulate.empty()) {
    if (options.simulate_with.empty()) return absl::OkStatus();
    return Invalid("--simulate-with needs --simulate");
  }
  if (options.backend != BackendKind::kTandem) {
    return Invalid("--simulate is of Tandem's server, not of --backend openai");
  }
  const client::Connection& connection = options.connection;
  if (connection.server != client::kDefaultServer || connection.has_tls() ||
      !connection.token_file.empty() || connection.insecure) {
    return Invalid("--server, --tls, --token-file and such name a server: --simulate has none");
  }
  if (options.slow_fraction > 0) {
    return Invalid("--slow-fraction needs a server: --simulate has no network");
  }
  return absl::OkStatus();
}

absl::Status CheckConnection(const LoadOptions& options) {
  const client::Connection& connection = options.connection;
  if (options.backend == BackendKind::kTandem) return client::Validate(connection);
  if (!connection.tls_server_name.empty()) {
    return Invalid("--tls-server-name is of --backend tandem: HTTPS looks for the host's name");
  }
  if (!connection.token_file.empty()) {
    return Invalid("--token-file is of --backend tandem: set OPENAI_API_KEY");
  }
  if (connection.has_tls() && connection.server.starts_with("http://")) {
    return Invalid(absl::StrCat("--tls and --tls-ca need https, found ", connection.server));
  }
  return client::ValidateTls(connection);
}

}  // namespace

void LoadOptions::ForEach(config::FieldList& visit) {
  visit.BeginSection("Server");
  visit(connection.server,
        {.flag = "--server",
         .help = "HOST:PORT; all addresses of the host are loaded in turn; openai: also "
                 "http(s)://HOST:PORT"});
  client::VisitConnection(connection, visit);
  visit(backend, {.flag = "--backend", .help = "the API: Tandem's gRPC, or OpenAI's completions"});
  visit(endpoint, {.flag = "--endpoint", .help = "openai: the path of completions"});
  visit(model, {.flag = "--model", .help = "openai: its name; empty: the server's first"});
  visit(adapter, {.flag = "--adapter",
                  .help = "tandem: one of the server's LoRA adapters; empty: the model alone"});
  visit(timeout, {.flag = "--timeout", .help = "of each request", .least = 0.01, .most = 1e6});
  visit(simulate, {.flag = "--simulate",
                   .help = "no server, but the simulation of one with this file of `tandem "
                           "profile`: takes next to no time"});
  visit(simulate_with, {.flag = "--simulate-with",
                        .help = "NAME=VALUE: a setting of that file, changed; may be repeated"});
  visit.BeginSection("Requests");
  VisitRequests(dataset, visit);
  visit(ignore_eos, {.flag = "--ignore-eos", .help = "answers always have their full length"});
  visit(temperature,
        {.flag = "--temperature", .help = "empty: the server's default", .least = 0, .most = 100});
  visit(priority, {.flag = "--priority",
                   .help = "a lower number goes first; empty: the server's default",
                   .least = -100,
                   .most = 100});
  visit(cancel_fraction, {.flag = "--cancel-fraction",
                          .help = "of the requests, cancelled somewhere in their answer"});
  visit(slow_fraction, {.flag = "--slow-fraction", .help = "of the requests, read slowly"});
  visit(slow_read_delay, {.flag = "--slow-read-delay",
                          .help = "of a slow reader after every message",
                          .least = 0.001,
                          .most = 3600});
  visit.BeginSection("Arrivals");
  visit(request_rates, {.flag = "--request-rate",
                        .help = "requests per second; inf: all at once; several values: several "
                                "runs"});
  visit(burstiness, {.flag = "--burstiness",
                     .help = "shape of the gamma distribution of the gaps: 1: a Poisson process,\n"
                             "below 1: more bursty, above 1: more even, inf: fixed gaps"});
  visit(max_concurrencies, {.flag = "--max-concurrency",
                            .help = "requests in flight at most; with --request-rate inf a closed "
                                    "loop;\nseveral values: several runs",
                            .least = 1,
                            .most = 1e6});
  visit(max_duration, {.flag = "--max-duration",
                       .help = "no request of a run is sent later than this",
                       .least = 0.1,
                       .most = 1e6});
  visit(dataset.self_timed, {.flag = "--self-timed", .help = "replay: send at the file's times"});
  visit(num_warmups, {.flag = "--num-warmups",
                      .help = "requests one after another before the first run, not counted",
                      .least = 0,
                      .most = 1e6});
  visit(sweep,
        {.flag = "--sweep",
         .help = "raise the rate from --request-rate (inf: 1) until the server cannot keep "
                 "up\n(within --goodput), then close in on the highest rate that it keeps up "
                 "with;\n20 s a run, more until it is clear, at most 300 s or --max-duration;\n"
                 "simulated: --num-prompts"});
  visit.BeginSection("Results");
  visit(percentile_metrics,
        {.flag = "--percentile-metrics", .help = "of ttft, tpot, itl and e2el, with commas"});
  visit(metric_percentiles,
        {.flag = "--metric-percentiles", .help = "such as 50,90,99.9", .least = 0, .most = 100});
  visit(goodput, {.flag = "--goodput",
                  .help = "objectives of a good request in ms: ttft:200,tpot:50,e2el:5000"});
  visit(label, {.flag = "--label", .help = "a name in the results"});
  visit(save_result, {.flag = "--save-result",
                      .help = "this file: a JSON object per run and line, vLLM's keys"});
  visit(save_detailed, {.flag = "--save-detailed", .help = "with every request's samples"});
  visit(html, {.flag = "--html", .help = "this file: a report to open in a browser"});
  visit(stats_interval, {.flag = "--stats-interval",
                         .help = "between two looks at the server's statistics",
                         .least = 0.01,
                         .most = 3600});
  visit(progress, {.flag = "--progress", .help = "a progress bar, if stderr is a terminal"});
}

absl::Status LoadOptions::Check() const {
  TANDEM_RETURN_IF_ERROR(CheckDataset(dataset));
  TANDEM_RETURN_IF_ERROR(CheckArrivals(*this));
  TANDEM_RETURN_IF_ERROR(CheckSimulation(*this));
  TANDEM_RETURN_IF_ERROR(CheckConnection(*this));
  TANDEM_RETURN_IF_ERROR(CheckFraction("--cancel-fraction", cancel_fraction));
  TANDEM_RETURN_IF_ERROR(CheckFraction("--slow-fraction", slow_fraction));
  if (cancel_fraction + slow_fraction > 1) {
    return Invalid("--cancel-fraction and --slow-fraction together must be at most 1");
  }
  if (save_detailed && save_result.empty()) return Invalid("--save-detailed needs --save-result");
  TANDEM_RETURN_IF_ERROR(ParseMetricNames(percentile_metrics).status());
  return ParseObjectives(goodput).status();
}

}  // namespace tandem::load
