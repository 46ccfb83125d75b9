#include "coordinator/grammar/token_grammar.h"

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::coordinator::grammar {

absl::StatusOr<std::shared_ptr<TokenGrammar>> TokenGrammar::Create(
    const Grammar& grammar, std::shared_ptr<const TokenTrie> tokens) {
  TANDEM_ASSIGN_OR_RETURN(Network network, Compile(grammar));
  auto network_ptr = std::make_shared<const Network>(std::move(network));
  std::shared_ptr<TokenGrammar> out(new TokenGrammar(std::move(network_ptr), std::move(tokens)));
  absl::StatusOr<Continuation> first = Matcher(out).Follow({});
  if (!first.ok()) return absl::InvalidArgumentError(first.status().message());
  out->first_ = *std::move(first);
  if (!out->first_.has_tokens) {
    return absl::InvalidArgumentError("the only text of this form is the empty one");
  }
  return out;
}

TokenGrammar::TokenGrammar(std::shared_ptr<const Network> network,
                           std::shared_ptr<const TokenTrie> tokens)
    : network_(std::move(network)), tokens_(std::move(tokens)), automaton_(network_) {}

void TokenGrammar::Restart(Place& place) {
  place.state = automaton_.Restart(place.state);
  place.version = ++version_;
  continuations_.clear();
}

absl::StatusOr<Continuation> TokenGrammar::Follow(std::span<const TokenId> tokens, Place& place) {
  MutexLock lock(mutex_);
  if (place.version != version_) place = {.version = version_, .state = automaton_.start()};
  automaton_.AllowWork(kMaxWork);
  if (automaton_.is_full()) Restart(place);
  absl::Status status = Read(tokens, place);
  Continuation next;
  if (status.ok()) next = ContinuationIn(place);
  if (automaton_.is_full()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the answer's form takes more than ", Automaton::kMaxBytes >> 20,
                     " MiB, or too much work, after ", tokens.size(), " tokens"));
  }
  TANDEM_RETURN_IF_ERROR(status);
  if (next.has_tokens || next.can_end) return next;
  return absl::FailedPreconditionError(absl::StrCat(
      "no token can follow ", tokens.size(), " of the answer: it would nest deeper than ",
      Automaton::kMaxDepth, ", or the vocabulary has no token for what its form needs next"));
}

Automaton::State TokenGrammar::Next(Place& place, char byte) {
  const Automaton::State next = automaton_.Next(place.state, static_cast<uint8_t>(byte));
  if (!automaton_.is_full()) return next;
  Restart(place);
  return automaton_.Next(place.state, static_cast<uint8_t>(byte));
}

absl::Status TokenGrammar::Read(std::span<const TokenId> tokens, Place& place) {
  for (; place.num_tokens < tokens.size(); ++place.num_tokens) {
    const TokenId token = tokens[place.num_tokens];
    const std::string_view bytes = tokens_->BytesOf(token);
    for (const char c : bytes) place.state = Next(place, c);
    if (place.state != Automaton::kDead && !bytes.empty()) continue;
    return absl::InternalError(absl::StrCat("token ", place.num_tokens, " of the answer, id ",
                                            token,
                                            ", is not of the form that the request asks for"));
  }
  return absl::OkStatus();
}

Continuation TokenGrammar::ContinuationIn(Place& place) {
  if (const auto known = continuations_.find(place.state); known != continuations_.end()) {
    return known->second;
  }
  if (continuations_.size() >= kMaxMasks) continuations_.clear();
  TokenMask mask = tokens_->AllowedIn(automaton_, place.state);
  if (automaton_.is_full()) {
    Restart(place);
    mask = tokens_->AllowedIn(automaton_, place.state);
  }
  const bool has_tokens = !step::IsEmpty(mask);
  return continuations_[place.state] = {
             .allowed = std::make_shared<const TokenMask>(std::move(mask)),
             .has_tokens = has_tokens,
             .can_end = automaton_.CanEnd(place.state)};
}

}  // namespace tandem::coordinator::grammar
