#include "coordinator/grammar/token_grammar.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::coordinator::grammar {
namespace {

// Why an automaton has no state for something; empty: there is none.
std::string WhyNot(Automaton::Want want) {
  switch (want) {
    case Automaton::Want::kRoom:
      return absl::StrCat("it has too many states, which take more than ",
                          Automaton::kMaxBytes >> 20, " MiB");
    case Automaton::Want::kWork:
      return "it takes too long to find which may";
    case Automaton::Want::kNone:
      break;
  }
  return "";
}

}  // namespace

absl::StatusOr<std::shared_ptr<TokenGrammar>> TokenGrammar::Create(
    const Grammar& grammar, std::shared_ptr<const TokenTrie> tokens) {
  TANDEM_ASSIGN_OR_RETURN(Network network, Compile(grammar));
  auto network_ptr = std::make_shared<const Network>(std::move(network));
  std::shared_ptr<TokenGrammar> out(new TokenGrammar(std::move(network_ptr), std::move(tokens)));
  TANDEM_RETURN_IF_ERROR(out->CheckStart());
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
    : network_(std::move(network)),
      tokens_(std::move(tokens)),
      automaton_(std::make_shared<Automaton>(network_, kMaxWork)) {}

absl::Status TokenGrammar::CheckStart() {
  MutexLock lock(mutex_);
  const std::string why_not = WhyNot(automaton_->want());
  if (why_not.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no token can begin an answer of this form: ", why_not));
}

absl::StatusOr<Continuation> TokenGrammar::Follow(std::span<const TokenId> tokens, Place& place) {
  MutexLock lock(mutex_);
  Move(place);
  automaton_->AllowWork(kMaxWork);
  const absl::Status status = Read(tokens, place);
  Continuation next;
  if (status.ok()) next = ContinuationIn(place);
  const auto no_token = [&](const auto&... why) {
    return absl::FailedPreconditionError(absl::StrCat("no token can follow ", tokens.size(),
                                                      " of an answer of this form: ", why...));
  };
  const std::string why_not = WhyNot(automaton_->want());
  if (!why_not.empty()) return no_token(why_not);
  TANDEM_RETURN_IF_ERROR(status);
  if (next.has_tokens || next.can_end) return next;
  return no_token("it would nest deeper than ", Automaton::kMaxDepth,
                  ", or the vocabulary has no token for what it needs next");
}

void TokenGrammar::Move(Place& place) {
  if (place.automaton == automaton_) return;
  place.state = place.automaton == nullptr ? automaton_->start()
                                           : automaton_->Import(*place.automaton, place.state);
  place.automaton = automaton_;
}

bool TokenGrammar::MakeRoom(Place& place) {
  if (automaton_->want() != Automaton::Want::kRoom || is_new_) return false;
  automaton_ =
      std::make_shared<Automaton>(network_, kMaxWork);  // the start takes as much as at first
  automaton_->AllowWork(kMaxWork);
  continuations_.clear();
  is_new_ = true;
  Move(place);
  return true;
}

void TokenGrammar::Read(char byte, Place& place) {
  const auto value = static_cast<uint8_t>(byte);
  const Automaton::State next = automaton_->Next(place.state, value);
  place.state = MakeRoom(place) ? automaton_->Next(place.state, value) : next;
}

absl::Status TokenGrammar::Read(std::span<const TokenId> tokens, Place& place) {
  for (; place.num_tokens < tokens.size(); ++place.num_tokens) {
    is_new_ = false;
    const TokenId token = tokens[place.num_tokens];
    const std::string_view bytes = tokens_->BytesOf(token);
    for (size_t i = 0; i < bytes.size() && place.state != Automaton::kDead; ++i) {
      Read(bytes[i], place);
    }
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
  is_new_ = false;
  TokenMask mask = tokens_->AllowedIn(*automaton_, place.state);
  if (MakeRoom(place)) mask = tokens_->AllowedIn(*automaton_, place.state);
  const bool has_tokens = !step::IsEmpty(mask);
  Continuation next = {.allowed = std::make_shared<const TokenMask>(std::move(mask)),
                       .has_tokens = has_tokens,
                       .can_end = automaton_->CanEnd(place.state)};
  if (automaton_->want() != Automaton::Want::kNone) return next;  // some tokens are missing
  if (continuations_.size() >= kMaxMasks) continuations_.clear();
  return continuations_[place.state] = std::move(next);
}

}  // namespace tandem::coordinator::grammar
