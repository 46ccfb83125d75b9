#include "coordinator/grammar/token_trie.h"

#include <algorithm>
#include <utility>

#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {
namespace {

// Longer tokens are never allowed: their prefixes say the same.
constexpr size_t kMaxTokenBytes = 255;

}  // namespace

TokenTrie::TokenTrie(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, uint32_t vocab_size)
    : tokenizer_(std::move(tokenizer)), vocab_size_(vocab_size) {
  for (uint32_t id = 0; id < vocab_size_; ++id) AddControlToken(static_cast<TokenId>(id));
  Tokens tokens;
  for (uint32_t id = 0; id < vocab_size_; ++id) {
    const std::string_view bytes = BytesOf(static_cast<TokenId>(id));
    if (std::ranges::binary_search(tokenizer_->suppressed_ids(), static_cast<TokenId>(id)))
      continue;
    if (!bytes.empty()) tokens.push_back({bytes, static_cast<TokenId>(id)});
  }
  std::ranges::sort(tokens);
  tokens_.reserve(tokens.size());
  Add(tokens, 0, tokens.size(), 0);
}

void TokenTrie::AddControlToken(TokenId id) {
  if (!tokenizer_->IsControl(id) || tokenizer_->IsEndOfGeneration(id)) return;
  const auto name = tokenizer_->TokenBytes(id);
  if (!name.ok() || name->empty() || name->size() >= kMaxTokenBytes) return;
  std::string bytes(1, kControlToken);
  bytes += *name;
  control_tokens_.emplace(id, std::move(bytes));
}

std::string_view TokenTrie::BytesOf(TokenId id) const {
  if (const auto control = control_tokens_.find(id); control != control_tokens_.end()) {
    return control->second;
  }
  if (tokenizer_->IsControl(id) || tokenizer_->IsEndOfGeneration(id)) return {};
  const auto bytes = tokenizer_->TokenBytes(id);
  if (!bytes.ok() || bytes->size() > kMaxTokenBytes) return {};
  // Vocabularies with byte tokens have one of this byte; it occurs in no UTF-8 text.
  return bytes->find(kControlToken) == std::string_view::npos ? *bytes : std::string_view();
}

void TokenTrie::Add(const Tokens& tokens, size_t begin, size_t end, size_t depth) {
  while (begin < end) {
    const auto byte = static_cast<uint8_t>(tokens[begin].first[depth]);
    size_t same = begin;
    while (same < end && static_cast<uint8_t>(tokens[same].first[depth]) == byte) ++same;
    const size_t node = nodes_.size();
    nodes_.push_back({.byte = byte,
                      .depth = static_cast<uint8_t>(depth),
                      .end = 0,
                      .first_token = static_cast<uint32_t>(tokens_.size()),
                      .end_token = 0});
    // The shortest come first.
    for (; begin < same && tokens[begin].first.size() == depth + 1; ++begin) {
      tokens_.push_back(tokens[begin].second);
    }
    nodes_[node].end_token = static_cast<uint32_t>(tokens_.size());
    Add(tokens, begin, same, depth + 1);
    nodes_[node].end = static_cast<uint32_t>(nodes_.size());
    begin = same;
  }
}

TokenMask TokenTrie::AllowedIn(Automaton& automaton, Automaton::State state) const {
  TokenMask mask(step::MaskWords(vocab_size_));
  Automaton::State states[kMaxTokenBytes + 1] = {state};  // after each byte of the way here
  for (size_t i = 0; i < nodes_.size() && automaton.want() == Automaton::Want::kNone;) {
    const Node& node = nodes_[i];
    const Automaton::State next = automaton.Next(states[node.depth], node.byte);
    if (next == Automaton::kDead) {
      i = node.end;
      continue;
    }
    states[node.depth + 1] = next;
    for (uint32_t t = node.first_token; t < node.end_token; ++t) step::Insert(tokens_[t], mask);
    ++i;
  }
  return mask;
}

}  // namespace tandem::coordinator::grammar
