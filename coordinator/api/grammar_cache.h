// GrammarCache: the forms that requests ask for as grammars over the model's tokens. Those asked
// for last are kept: what one request found out of a form serves the next.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_GRAMMAR_CACHE_H_
#define TANDEM_COORDINATOR_API_GRAMMAR_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/api/constraint.h"
#include "coordinator/grammar/token_grammar.h"

namespace tandem::coordinator {

class GrammarCache {
 public:
  // Grammars that are kept, and their bytes, apart from those in use.
  static constexpr size_t kMaxGrammars = 32;
  static constexpr size_t kMaxBytes = size_t{512} << 20;
  // Of the networks of all grammars that there are: of those that wait, too.
  static constexpr size_t kMaxNetworkBytes = size_t{1} << 30;

  // `vocab_size` is the head's.
  GrammarCache(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, uint32_t vocab_size,
               size_t most_network_bytes = kMaxNetworkBytes);

  // Null without a constraint. INVALID_ARGUMENT if it is none, is not supported or allows nothing;
  // UNIMPLEMENTED if the vocabulary is too large for masks; RESOURCE_EXHAUSTED if the grammars of
  // other requests leave too little memory. Takes time by the constraint's length.
  absl::StatusOr<std::shared_ptr<grammar::TokenGrammar>> Of(const Constraint& constraint);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<grammar::TokenGrammar> grammar;
  };

  absl::StatusOr<std::shared_ptr<grammar::TokenGrammar>> Make(const Constraint& constraint);
  // The same, and its network counts as long as it lives.
  absl::StatusOr<std::shared_ptr<grammar::TokenGrammar>> Counted(
      std::shared_ptr<grammar::TokenGrammar> grammar);
  std::shared_ptr<const grammar::TokenTrie> Tokens();
  // Null if it is not kept.
  std::shared_ptr<grammar::TokenGrammar> Find(const std::string& key);
  void Keep(const std::string& key, std::shared_ptr<grammar::TokenGrammar> grammar);

  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  const uint32_t vocab_size_;
  const size_t most_network_bytes_;
  // Shared with grammars, which may outlive this.
  const std::shared_ptr<std::atomic<size_t>> network_bytes_ =
      std::make_shared<std::atomic<size_t>>(0);
  Mutex mutex_;
  std::shared_ptr<const grammar::TokenTrie> tokens_ TANDEM_GUARDED_BY(mutex_);
  std::list<Entry> entries_ TANDEM_GUARDED_BY(mutex_);  // the last one asked for first
  size_t bytes_ TANDEM_GUARDED_BY(mutex_) = 0;          // of all
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> by_key_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRAMMAR_CACHE_H_
