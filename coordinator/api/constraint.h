// Constraint: the form that a request's whole answer has to have, or what comes after thoughts.
// Plain data, unchecked.
#ifndef TANDEM_COORDINATOR_API_CONSTRAINT_H_
#define TANDEM_COORDINATOR_API_CONSTRAINT_H_

#include <optional>
#include <string>
#include <vector>

#include "coordinator/grammar/reasoning.h"

namespace tandem::coordinator {

struct Constraint {
  enum class Kind {
    kNone,
    kJsonSchema,  // `text`
    kJsonObject,  // any
    kRegex,       // `text`, which matches from end to end
    kChoice,      // one of `choices`
    kGrammar,     // `text`, in GBNF
  };
  Kind kind = Kind::kNone;
  std::string text{};
  std::vector<std::string> choices{};
  std::optional<grammar::Reasoning> reasoning{};
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_CONSTRAINT_H_
