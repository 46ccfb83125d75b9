// Finds stop strings in a text that arrives in pieces, and holds back only a possible prefix of
// one.
//
// The text ends before the stop string that completes first, or with it; of several that are
// complete at the same byte, the longest counts. So the result does not depend on how the text is
// split into pieces.
#ifndef TANDEM_COMMON_TOKENIZER_STOP_MATCHER_H_
#define TANDEM_COMMON_TOKENIZER_STOP_MATCHER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/tokenizer/aho_corasick.h"

namespace tandem::tokenizer {

// One sequence's state; not thread-safe. Movable; a copy shares what was built of the stop strings.
class StopMatcher {
 public:
  // All stop strings of a request together, in bytes.
  static constexpr size_t kMaxTotalBytes = 64 * 1024;

  // INVALID_ARGUMENT when a stop string is empty, or all together exceed kMaxTotalBytes. Without
  // stop strings, all text passes immediately. `include_stop`: the stop string found is part of the
  // text.
  static absl::StatusOr<StopMatcher> Create(const std::vector<std::string>& stops,
                                            bool include_stop = false);

  // The text that may be sent after `text` arrived, possibly from earlier pieces. Empty once
  // stopped. If pieces and stop strings are valid UTF-8, so is the result. A stop string that
  // completes while `may_stop` is false is text like any other; one that began then may complete
  // later.
  std::string Append(std::string_view text, bool may_stop = true);
  // Ends the text: returns the held-back text, unless a stop string was found.
  std::string Flush();

  // A stop string was found.
  bool stopped() const { return matched_ >= 0; }
  // Its index in `stops`, or -1.
  int matched() const { return matched_; }
  size_t held_back_bytes() const { return held_back_.size(); }

 private:
  StopMatcher(const std::vector<std::string>& stops, bool include_stop);

  std::shared_ptr<const AhoCorasick> automaton_;
  std::vector<size_t> stop_bytes_;  // lengths of the stop strings
  bool include_stop_;
  AhoCorasick::State state_ = AhoCorasick::kStart;
  std::string held_back_;  // as long as the state's depth
  int matched_ = -1;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_STOP_MATCHER_H_
