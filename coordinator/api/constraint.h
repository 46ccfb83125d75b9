// Constraint: the form that a request's whole answer has to have. Plain data, unchecked.
#ifndef TANDEM_COORDINATOR_API_CONSTRAINT_H_
#define TANDEM_COORDINATOR_API_CONSTRAINT_H_

#include <string>
#include <vector>

namespace tandem::coordinator {

struct Constraint {
  enum class Kind {
    kNone,
    kJsonSchema,  // `text`
    kJsonObject,  // any
    kRegex,       // `text`, which matches from end to end
    kChoice,      // one of `choices`
  };
  Kind kind = Kind::kNone;
  std::string text{};
  std::vector<std::string> choices{};
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_CONSTRAINT_H_
