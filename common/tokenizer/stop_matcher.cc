#include "common/tokenizer/stop_matcher.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::tokenizer {

absl::StatusOr<StopMatcher> StopMatcher::Create(const std::vector<std::string>& stops,
                                                bool include_stop) {
  size_t total_bytes = 0;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) {
      return absl::InvalidArgumentError(absl::StrCat("stop string ", i, " is empty"));
    }
    total_bytes += stops[i].size();
  }
  if (total_bytes > kMaxTotalBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the stop strings have ", total_bytes, " bytes; at most ", kMaxTotalBytes, " are allowed"));
  }
  return StopMatcher(stops, include_stop);
}

StopMatcher::StopMatcher(const std::vector<std::string>& stops, bool include_stop)
    : automaton_(std::make_shared<const AhoCorasick>(stops)), include_stop_(include_stop) {
  for (const std::string& stop : stops) stop_bytes_.push_back(stop.size());
}

std::string StopMatcher::Append(std::string_view text, bool may_stop) {
  if (stopped()) return "";
  std::string ready = std::move(held_back_);
  held_back_.clear();
  for (char c : text) {
    ready.push_back(c);
    state_ = automaton_->Next(state_, static_cast<uint8_t>(c));
    if (may_stop) matched_ = automaton_->LongestMatch(state_);
    if (stopped()) {
      if (!include_stop_) ready.resize(ready.size() - stop_bytes_[matched_]);
      return ready;
    }
  }
  const size_t sendable = ready.size() - static_cast<size_t>(automaton_->Depth(state_));
  held_back_ = ready.substr(sendable);
  ready.resize(sendable);
  return ready;
}

std::string StopMatcher::Flush() {
  state_ = AhoCorasick::kStart;
  return std::exchange(held_back_, "");
}

}  // namespace tandem::tokenizer
