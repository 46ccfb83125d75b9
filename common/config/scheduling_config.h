// SchedulingConfig: which requests run when. The coordinator's alone.
#ifndef TANDEM_COMMON_CONFIG_SCHEDULING_CONFIG_H_
#define TANDEM_COMMON_CONFIG_SCHEDULING_CONFIG_H_

#include <chrono>
#include <cstdint>
#include <utility>

#include "common/base/clock.h"
#include "common/config/field.h"

namespace tandem::config {

// What gets a step's tokens first. kDecodeFirst keeps the time between tokens even; kPrefillFirst
// the time to the first one short.
enum class SchedulingPolicy { kDecodeFirst, kPrefillFirst };
template <>
struct EnumNames<SchedulingPolicy> {
  static constexpr std::pair<SchedulingPolicy, const char*> kNames[] = {
      {SchedulingPolicy::kDecodeFirst, "decode-first"},
      {SchedulingPolicy::kPrefillFirst, "prefill-first"}};
};

// Where guesses of a sequence's next tokens come from, which are computed with its last one. kAuto:
// kNgram for dense models on the CPU, else kOff
// (docs/decisions/0026-speculation-by-prompt-lookup.md).
enum class Speculation { kAuto, kOff, kNgram, kDraft, kMtp };
template <>
struct EnumNames<Speculation> {
  static constexpr std::pair<Speculation, const char*> kNames[] = {{Speculation::kAuto, "auto"},
                                                                   {Speculation::kOff, "off"},
                                                                   {Speculation::kNgram, "ngram"},
                                                                   {Speculation::kDraft, "draft"},
                                                                   {Speculation::kMtp, "mtp"}};
};

struct SchedulingConfig {
  SchedulingPolicy policy = SchedulingPolicy::kDecodeFirst;
  uint32_t chunked_prefill_size = 0;
  uint32_t max_queued_requests = 1024;
  uint32_t max_queued_tokens = 1 << 20;
  Duration request_timeout{};
  Duration priority_ageing = std::chrono::seconds(10);
  uint32_t max_queue_skips = 8;
  uint32_t target_itl_ms = 0;
  bool enable_prefix_caching = true;
  bool overlap = true;
  Speculation speculation = Speculation::kAuto;
  uint32_t max_draft_tokens = 7;

  void ForEach(FieldList& visit) {
    visit.BeginSection("Scheduling");
    visit(policy, {.flag = "--scheduling-policy", .help = "what gets the tokens of a step first"});
    visit(chunked_prefill_size,
          {.flag = "--chunked-prefill-size",
           .help = "most prefill tokens of one sequence in a step (0: --max-num-batched-tokens)",
           .least = 0,
           .most = 2147483647});
    visit(max_queued_requests, {.flag = "--max-queued-requests",
                                .help = "requests that may wait; more are refused",
                                .least = 1,
                                .most = 1 << 20});
    visit(max_queued_tokens,
          {.flag = "--max-queued-tokens",
           .help = "prompt tokens of all requests that have no token yet; a request that would "
                   "exceed them is refused, unless it is the only one",
           .least = 1,
           .most = 2147483647});
    visit(request_timeout,
          {.flag = "--request-timeout",
           .help = "how long a request may take from its arrival on, as far as its call does not "
                   "say less; then it ends with DEADLINE_EXCEEDED. 0: no limit",
           .least = 0,
           .most = 86400});
    visit(priority_ageing,
          {.flag = "--priority-ageing",
           .help = "a request goes before those of the next higher number in `priority` that came "
                   "less than this time earlier; a number is seconds",
           .least = 0.001,
           .most = 3600});
    visit(max_queue_skips,
          {.flag = "--max-queue-skips",
           .help = "how many later requests may run before one that waits and does not fit into "
                   "the KV cache yet",
           .least = 0,
           .most = 1 << 20});
    visit(target_itl_ms,
          {.flag = "--target-itl-ms",
           .help = "while a request gets tokens, a step has so little prefill that it should take "
                   "no longer than this many milliseconds. 0: as much as fits",
           .least = 0,
           .most = 60000});
    visit(enable_prefix_caching,
          {.flag = "--enable-prefix-caching",
           .help = "reuse the KV blocks of equal prompt beginnings (on by default)"});
    visit(overlap, {.flag = "--overlap",
                    .help = "send a step to the workers while they compute the one before (on by "
                            "default)"});
    visit(
        speculation,
        {.flag = "--speculation",
         .help = "guess next tokens and compute them with the last one: ngram guesses what "
                 "followed the last tokens when they occurred before, draft asks --draft-model, "
                 "mtp the file's own draft head (NextN, multi-token prediction); auto is "
                 "ngram for dense models on the CPU, where answers stay the same to the bit, else "
                 "off"});
    visit(max_draft_tokens, {.flag = "--max-draft-tokens",
                             .help = "most guessed tokens of one sequence in a step",
                             .least = 1,
                             .most = 7});
  }
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_SCHEDULING_CONFIG_H_
