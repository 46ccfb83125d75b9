// TextStream: detokenizes one request's tokens and applies its stop strings. Independent of gRPC.
// Not thread-safe: a writer's thread owns it.
#ifndef TANDEM_COORDINATOR_API_TEXT_STREAM_H_
#define TANDEM_COORDINATOR_API_TEXT_STREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tokenizer/detokenizer.h"
#include "common/tokenizer/stop_matcher.h"
#include "coordinator/api/text_update.h"

namespace tandem::coordinator {

class TextStream {
 public:
  // `model_tokenizer` must outlive the stream. Without `skip_special`, control tokens give their
  // names as text. INVALID_ARGUMENT for bad stop strings.
  static absl::StatusOr<TextStream> Create(const tokenizer::Tokenizer& model_tokenizer,
                                           const Sampling& sampling, bool skip_special = true);
  // The same with a matcher of sampling's stop strings, of which continuations have copies.
  TextStream(const tokenizer::Tokenizer& model_tokenizer, tokenizer::StopMatcher matcher,
             const Sampling& sampling, bool skip_special);

  // The update with its text, and what matched if it ends with kStop. A complete stop string ends
  // the request: reason kStop, tokens and usage up to the one that completed it. Later updates
  // become empty.
  TextUpdate Convert(StreamUpdate update);
  // Whether the last update has been converted.
  bool ended() const { return ended_; }
  // Whether the stream itself ended the request: a stop string matched, or there is no text for its
  // tokens.
  bool stopped() const { return stopped_; }

 private:
  // Appends the final text up to and including `token`, the request's next one.
  absl::Status AppendText(TokenId token, std::string& text);

  // What ended a request whose last tokens these are.
  TextUpdate::Matched MatchedStop(const std::vector<TokenId>& tokens) const;

  tokenizer::IncrementalDetokenizer detokenizer_;
  tokenizer::StopMatcher matcher_;
  TokenId vocab_size_;            // ids from here on have no text
  std::vector<TokenId> end_ids_;  // sorted; their text is not sent
  std::vector<std::string> stops_;
  // The empty entry of the prompt's first token, which has no log-probability, is still to be
  // added.
  bool owes_first_logprobs_;
  uint32_t min_tokens_;  // before as many no stop string ends the request
  uint32_t num_tokens_ = 0;
  bool ended_ = false;
  bool stopped_ = false;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TEXT_STREAM_H_
