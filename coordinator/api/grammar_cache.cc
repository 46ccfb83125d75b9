#include "coordinator/api/grammar_cache.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/limits.h"
#include "coordinator/grammar/gbnf.h"
#include "coordinator/grammar/json_schema.h"
#include "coordinator/grammar/text_forms.h"

namespace tandem::coordinator {
namespace {

absl::StatusOr<grammar::Grammar> GrammarOf(const Constraint& constraint) {
  switch (constraint.kind) {
    case Constraint::Kind::kJsonSchema:
      return grammar::GrammarOfSchema(constraint.text);
    case Constraint::Kind::kJsonObject:
      return grammar::GrammarOfAnyObject();
    case Constraint::Kind::kRegex:
      return grammar::GrammarOfRegex(constraint.text);
    case Constraint::Kind::kChoice:
      return grammar::GrammarOfChoices(constraint.choices);
    case Constraint::Kind::kGrammar:
      return grammar::GrammarOfGbnf(constraint.text);
    case Constraint::Kind::kNone:
      break;
  }
  return absl::InternalError("there is no constraint");
}

// Two constraints have the same if and only if they are equal.
std::string KeyOf(const Constraint& constraint) {
  std::string key = absl::StrCat(static_cast<int>(constraint.kind), ":", constraint.text.size(),
                                 ":", constraint.text);
  for (const std::string& choice : constraint.choices) {
    absl::StrAppend(&key, choice.size(), ":", choice);
  }
  if (!constraint.reasoning.has_value()) return key;
  const grammar::Reasoning& reasoning = *constraint.reasoning;
  for (const std::string* part : {&reasoning.start, &reasoning.end, &reasoning.answer_start}) {
    absl::StrAppend(&key, "/", part->size(), ":", *part);
  }
  return key;
}

}  // namespace

GrammarCache::GrammarCache(std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                           uint32_t vocab_size, size_t most_network_bytes)
    : tokenizer_(std::move(tokenizer)),
      vocab_size_(vocab_size),
      most_network_bytes_(most_network_bytes) {}

absl::StatusOr<std::shared_ptr<grammar::TokenGrammar>> GrammarCache::Of(
    const Constraint& constraint) {
  if (constraint.kind == Constraint::Kind::kNone) return nullptr;
  if (vocab_size_ > step::kMaxMaskedVocabulary) {
    return absl::UnimplementedError(absl::StrCat("sampling.constraint: the vocabulary has ",
                                                 vocab_size_, " ids, at most ",
                                                 step::kMaxMaskedVocabulary, " are supported"));
  }
  const std::string key = KeyOf(constraint);
  if (auto known = Find(key); known != nullptr) return known;
  absl::StatusOr<std::shared_ptr<grammar::TokenGrammar>> made = Make(constraint);
  if (!made.ok()) return Annotate(made.status(), "sampling.constraint");
  Keep(key, *made);
  return made;
}

absl::StatusOr<std::shared_ptr<grammar::TokenGrammar>> GrammarCache::Make(
    const Constraint& constraint) {
  TANDEM_ASSIGN_OR_RETURN(grammar::Grammar grammar, GrammarOf(constraint));
  if (constraint.reasoning.has_value()) {
    TANDEM_ASSIGN_OR_RETURN(grammar,
                            grammar::WithReasoning(*constraint.reasoning, std::move(grammar)));
  }
  TANDEM_ASSIGN_OR_RETURN(auto made, grammar::TokenGrammar::Create(grammar, Tokens()));
  return Counted(std::move(made));
}

absl::StatusOr<std::shared_ptr<grammar::TokenGrammar>> GrammarCache::Counted(
    std::shared_ptr<grammar::TokenGrammar> grammar) {
  const size_t bytes = grammar->network_bytes();
  const size_t others = network_bytes_->fetch_add(bytes);
  grammar::TokenGrammar* const same = grammar.get();
  std::shared_ptr<grammar::TokenGrammar> counted(
      same, [all = network_bytes_, bytes, grammar = std::move(grammar)](auto*) mutable {
        grammar.reset();
        all->fetch_sub(bytes);
      });
  if (others + bytes <= most_network_bytes_) return counted;
  return absl::ResourceExhaustedError(absl::StrCat("the form takes ", bytes,
                                                   " bytes, those of other requests ", others,
                                                   ", all together at most ", most_network_bytes_));
}

std::shared_ptr<const grammar::TokenTrie> GrammarCache::Tokens() {
  MutexLock lock(mutex_);
  if (tokens_ == nullptr) {
    tokens_ = std::make_shared<const grammar::TokenTrie>(tokenizer_, vocab_size_);
  }
  return tokens_;
}

std::shared_ptr<grammar::TokenGrammar> GrammarCache::Find(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().grammar;
}

// Two threads may have made the same: the first one stays.
void GrammarCache::Keep(const std::string& key, std::shared_ptr<grammar::TokenGrammar> grammar) {
  MutexLock lock(mutex_);
  if (by_key_.contains(key)) return;
  bytes_ += key.size() + grammar->bytes();
  entries_.push_front({key, std::move(grammar)});
  by_key_.emplace(key, entries_.begin());
  while (entries_.size() > kMaxGrammars || bytes_ > kMaxBytes) {
    const Entry& last = entries_.back();
    bytes_ -= last.key.size() + last.grammar->bytes();
    by_key_.erase(last.key);
    entries_.pop_back();
  }
}

}  // namespace tandem::coordinator
