#include "client/json_forms.h"

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/answer_printer.h"
#include "client/bench/bench_report.h"
#include "client/stats_text.h"
#include "common/model/info.h"

namespace tandem::client {
namespace {

using Json = nlohmann::ordered_json;

// Of TokenLogprobs and TopLogprob.
template <typename Message>
Json LogprobJson(const Message& one) {
  return {{"token_id", one.token_id()}, {"logprob", one.logprob()}, {"rank", one.rank()}};
}

Json LogprobsJson(const std::vector<v1::TokenLogprobs>& all) {
  Json list = Json::array();
  for (const v1::TokenLogprobs& one : all) {
    Json entry;  // null if unknown
    if (one.rank() > 0) {
      entry = LogprobJson(one);
      entry["top"] = Json::array();
      for (const v1::TopLogprob& top : one.top()) entry["top"].push_back(LogprobJson(top));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

const char* Name(v1::FinishReason reason) {
  switch (reason) {
    case v1::FINISH_REASON_STOP:
      return "stop";
    case v1::FINISH_REASON_LENGTH:
      return "length";
    case v1::FINISH_REASON_CANCELLED:
      return "cancelled";
    default:
      return "unspecified";
  }
}

Json RopeJson(const model::RopeSpec& rope) {
  Json json;
  json["pairing"] = rope.pairing == model::RopePairing::kHalves ? "halves" : "adjacent";
  json["dims"] = rope.rotary_dims;
  json["base"] = rope.base;
  json["scaling"] = std::string(model::Name(rope.scaling));
  json["factor"] = rope.factor;
  json["original_context"] = rope.original_context;
  return json;
}

Json WindowsJson(const model::ModelSpec& spec) {
  Json json = Json::array();
  for (const model::KvGroupSpec& group : spec.kv_groups) {
    if (group.window_tokens == 0) continue;
    json.push_back({{"window_tokens", group.window_tokens},
                    {"chunked", group.chunked},
                    {"layers", group.layers.size() + group.readers.size()}});
  }
  return json;
}

Json MoeJson(const model::MoeSpec& moe) {
  return {{"experts", moe.num_experts},
          {"experts_per_token", moe.experts_per_token},
          {"ffn_size", moe.ffn_size},
          {"shared_ffn_size", moe.shared_ffn_size},
          {"first_layer", moe.first_layer}};
}

Json TypeJson(const model::TypeShare& share) {
  return {{"type", std::string(tensor::Name(share.type))},
          {"tensors", share.tensors},
          {"parameters", share.parameters},
          {"bytes", share.bytes}};
}

Json ParallelJson(const model::ParallelInfo& info) {
  Json json = {{"size", info.size}, {"possible", info.possible}};
  if (!info.possible) {
    json["why_not"] = info.why_not;
    return json;
  }
  json["heads_per_rank"] = info.heads_per_rank;
  json["kv_heads_per_rank"] = info.kv_heads_per_rank;
  json["weight_bytes_per_rank"] = info.weight_bytes_per_rank;
  json["kv_bytes_per_token_per_rank"] = info.kv_bytes_per_token_per_rank;
  if (info.state_bytes_per_sequence_per_rank > 0) {
    json["state_bytes_per_sequence_per_rank"] = info.state_bytes_per_sequence_per_rank;
  }
  if (info.tokens_that_fit.has_value()) json["tokens_that_fit"] = *info.tokens_that_fit;
  return json;
}

void AddSpec(const model::ModelSpec& spec, Json& json) {
  json["name"] = spec.name;
  json["architecture"] = spec.architecture;
  json["quantization"] = spec.quantization;
  json["layers"] = spec.num_layers;
  json["hidden_size"] = spec.hidden_size;
  json["ffn_size"] = spec.ffn_size;
  json["heads"] = spec.num_heads;
  json["kv_heads"] = spec.num_kv_heads;
  json["head_dim"] = spec.head_dim;
  json["vocab_size"] = spec.vocab_size;
  json["context_length"] = spec.context_length;
  if (spec.moe.has_value()) json["moe"] = MoeJson(*spec.moe);
  json["windows"] = WindowsJson(spec);
  json["rope"] = RopeJson(spec.rope);
  json["features"] = {{"tied_embeddings", !spec.Has(model::Feature::kUntiedHead)},
                      {"qkv_bias", spec.Has(model::Feature::kQkvBias)},
                      {"output_bias", spec.Has(model::Feature::kOutputBias)},
                      {"qk_norm", spec.Has(model::Feature::kQkNorm)},
                      {"rope_factors", spec.Has(model::Feature::kRopeFactors)}};
}

Json StepJson(const coordinator::EngineStepTimings& timings) {
  return {{"schedule", MicrosPerStep(timings.schedule_ns, timings)},
          {"build", MicrosPerStep(timings.build_ns, timings)},
          {"submit", MicrosPerStep(timings.submit_ns, timings)},
          {"apply", MicrosPerStep(timings.apply_ns, timings)},
          {"total", MicrosPerStep(timings.coordinator_ns(), timings)},
          {"wait", MicrosPerStep(timings.wait_ns, timings)},
          {"rank_0_idle", MicrosPerStep(timings.idle_ns, timings)}};
}

}  // namespace

std::string ToJson(const Answer& answer) {
  Json json;
  if (answer.index.has_value()) json["index"] = *answer.index;
  json["text"] = answer.text;
  json["token_ids"] = answer.token_ids;
  if (!answer.logprobs.empty()) json["logprobs"] = LogprobsJson(answer.logprobs);
  if (!answer.prompt_logprobs.empty()) {
    json["prompt_logprobs"] = LogprobsJson(answer.prompt_logprobs);
  }
  if (answer.status.ok()) {
    json["finish_reason"] = Name(answer.finish_reason);
    if (const auto* text = std::get_if<std::string>(&answer.matched_stop)) {
      json["matched_stop"] = *text;
    } else if (const auto* id = std::get_if<int32_t>(&answer.matched_stop)) {
      json["matched_stop"] = *id;
    }
    json["usage"] = {{"prompt_tokens", answer.usage.prompt_tokens()},
                     {"completion_tokens", answer.usage.completion_tokens()},
                     {"cached_tokens", answer.usage.cached_tokens()}};
    if (answer.usage.draft_tokens() > 0) {
      json["usage"]["draft_tokens"] = answer.usage.draft_tokens();
      json["usage"]["accepted_draft_tokens"] = answer.usage.accepted_draft_tokens();
    }
  } else {
    json["finish_reason"] = nullptr;
    json["usage"] = nullptr;
    json["error"] = std::string(answer.status.message());
    json["code"] = absl::StatusCodeToString(answer.status.code());
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ToJson(const v1::EmbedResponse& answer) {
  Json json;
  json["embedding"] = Json::array();
  for (const float value : answer.embedding()) json["embedding"].push_back(value);
  json["usage"] = {{"prompt_tokens", answer.usage().prompt_tokens()},
                   {"cached_tokens", answer.usage().cached_tokens()}};
  return json.dump();
}

std::string ToJson(const v1::ScoreResponse& answer) {
  Json json;
  json["logprob"] = answer.logprob();
  json["is_greedy"] = answer.is_greedy();
  json["tokens"] = Json::array();
  for (const v1::TokenScore& one : answer.tokens()) {
    Json entry = LogprobJson(one);
    entry["is_greedy"] = one.is_greedy();
    json["tokens"].push_back(std::move(entry));
  }
  json["usage"] = {{"prompt_tokens", answer.usage().prompt_tokens()},
                   {"cached_tokens", answer.usage().cached_tokens()}};
  return json.dump();
}

std::string ToJson(const model::ModelInfo& info) {
  Json json;
  AddSpec(info.spec, json);
  json["gguf_version"] = info.gguf_version;
  json["files"] = info.files;
  json["file_bytes"] = info.file_bytes;
  json["fingerprint"] = absl::StrCat(absl::Hex(info.fingerprint, absl::kZeroPad16));
  json["tensors"] = info.tensors;
  json["parameters"] = info.parameters;
  json["types"] = Json::array();
  for (const model::TypeShare& share : info.types) json["types"].push_back(TypeJson(share));
  json["kv_bytes_per_token"] = {{"f16", info.kv_bytes_per_token_f16},
                                {"f32", info.kv_bytes_per_token_f32}};
  if (info.kv_bytes_per_token_unabsorbed.has_value()) {
    json["kv_bytes_per_token"]["f16_without_mla"] = *info.kv_bytes_per_token_unabsorbed;
  }
  if (info.state_bytes_per_sequence > 0) {
    json["state_bytes_per_sequence"] = info.state_bytes_per_sequence;
  }
  json["kv_cache_type"] = std::string(tensor::Name(info.query.kv_type));
  if (info.query.memory_bytes.has_value()) json["memory_bytes"] = *info.query.memory_bytes;
  json["tensor_parallel"] = Json::array();
  for (const model::ParallelInfo& parallel : info.parallel) {
    json["tensor_parallel"].push_back(ParallelJson(parallel));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string ToJson(const v1::GetStatsResponse& stats) {
  Json json;
  for (const v1::Metric& metric : stats.metrics()) json[metric.name()] = metric.value();
  return json.dump();
}

std::string ToJson(const BenchReport& report) {
  const config::WorkerConfig& worker = report.options.server.worker;
  const int32_t ranks = report.options.server.cluster.tensor_parallel_size;
  Json json;
  json["model"] = worker.model.path;
  json["architecture"] = report.architecture;
  json["quantization"] = report.quantization;
  json["device"] = config::NameOf(worker.device.device);
  json["cpu_kernels"] = config::NameOf(worker.device.cpu_kernels);
  json["kv_cache_type"] = config::NameOf(worker.cache.kv_cache_type);
  json["step_transport"] = config::NameOf(worker.transport.step_transport);
  json["tensor_parallel_size"] = ranks;
  json["threads_per_worker"] = report.threads_per_worker;
  json["prefill"] = report.options.prefill;
  json["decode"] = report.options.decode;
  json["repetitions"] = report.options.repetitions;
  Json by_batch = Json::object();
  Json steps = Json::object();
  if (report.prefill) {
    json["prefill_tokens_per_second"] = report.prefill->tokens_per_second;
    steps["prefill"] = StepJson(report.prefill->timings);
  }
  for (const auto& [batch, measurement] : report.decode) {
    by_batch[absl::StrCat(batch)] = measurement.tokens_per_second;
    steps["decode"][absl::StrCat(batch)] = StepJson(measurement.timings);
  }
  if (!report.decode.empty()) json["decode_tokens_per_second"] = by_batch;
  for (const auto& [batch, acceptance, measured] : report.drafts) {
    json["drafts"].push_back({{"batch", batch},
                              {"acceptance_percent", acceptance},
                              {"tokens_per_second", measured.tokens_per_second},
                              {"ratio", measured.ratio},
                              {"least_ratio", measured.least_ratio},
                              {"most_ratio", measured.most_ratio},
                              {"computed", measured.drafts},
                              {"accepted", measured.accepted}});
  }
  json["coordinator_us_per_step"] = steps;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem::client
