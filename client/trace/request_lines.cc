#include "client/trace/request_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::client {

using Json = ChromeTrace::Json;
using v1::RequestChange;

void RequestLines::Take(const RequestChange& change) {
  if (change.what() == RequestChange::ARRIVED) return Open(change);
  const auto found = open_.find(change.handle());
  if (found == open_.end()) return;  // its arrival was dropped
  Request& request = found->second;
  request.at_ns = std::max(request.at_ns, change.at_ns());
  switch (change.what()) {
    case RequestChange::SCHEDULED:
      return Enter("prefill", change.handle(), request);
    case RequestChange::DECODES:
      return Enter("decode", change.handle(), request);
    case RequestChange::PREEMPTED:
      Note("preempted", request);
      return Enter("queue", change.handle(), request);
    case RequestChange::REWOUND:
      Note("rewound", request);
      return Enter("queue", change.handle(), request);
    case RequestChange::ENDED:
      Enter("", change.handle(), request);
      out_.End(process_, change.handle(), request.name, request.at_ns,
               {{"reason", change.reason()},
                {"completion_tokens", change.completion_tokens()},
                {"cached_tokens", change.cached_tokens()}});
      open_.erase(found);
      return;
    default:
      return;
  }
}

void RequestLines::Open(const RequestChange& change) {
  const auto [found, is_new] = open_.try_emplace(change.handle());
  if (!is_new) return;
  Request& request = found->second;
  request.name = absl::StrCat("request ", change.request_id());
  request.at_ns = std::max<int64_t>(change.at_ns(), 0);
  Json args = {{"request_id", change.request_id()}, {"prompt_tokens", change.prompt_tokens()}};
  if (!change.trace_id().empty()) args["trace_id"] = change.trace_id();
  out_.Begin(process_, change.handle(), request.name, request.at_ns, args);
  Enter("queue", change.handle(), request);
}

void RequestLines::Enter(const std::string& phase, uint64_t handle, Request& request) {
  if (!request.phase.empty()) out_.End(process_, handle, request.phase, request.at_ns);
  request.phase = phase;
  if (!phase.empty()) out_.Begin(process_, handle, phase, request.at_ns);
}

void RequestLines::Note(const char* what, const Request& request) {
  out_.Instant(moments_, absl::StrCat(request.name, " ", what), request.at_ns, {});
}

}  // namespace tandem::client
