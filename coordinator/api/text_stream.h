// TextStream: one request's tokens become text, with stop strings cut out. Knows nothing of gRPC.
// Not thread-safe: a writer's thread owns it.
#ifndef TANDEM_COORDINATOR_API_TEXT_STREAM_H_
#define TANDEM_COORDINATOR_API_TEXT_STREAM_H_

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
  // `model_tokenizer` must outlive the stream. INVALID_ARGUMENT for bad stop strings.
  static absl::StatusOr<TextStream> Create(const tokenizer::Tokenizer& model_tokenizer,
                                           const Sampling& sampling);

  // The update with its text. Where a stop string is complete, the request ends: reason kStop,
  // tokens and usage up to the one that completed it. Whatever follows the end gives an empty
  // update.
  TextUpdate Convert(StreamUpdate update);
  // Whether the last update has been converted.
  bool ended() const { return ended_; }

 private:
  TextStream(const tokenizer::Tokenizer& model_tokenizer, tokenizer::StopMatcher matcher,
             const Sampling& sampling);

  // Adds what may be sent of `token`'s text.
  absl::Status AppendText(TokenId token, std::string& text);

  tokenizer::IncrementalDetokenizer detokenizer_;
  tokenizer::StopMatcher matcher_;
  TokenId vocab_size_;            // ids from here on have no text
  std::vector<TokenId> end_ids_;  // sorted; their text is not sent
  // The prompt's first token, which has nothing before it, has yet to get an empty entry.
  bool owes_first_logprobs_;
  bool ended_ = false;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TEXT_STREAM_H_
