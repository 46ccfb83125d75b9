// Scope: what a token allows, and what each method of the public port needs.
#ifndef TANDEM_COORDINATOR_API_AUTH_SCOPE_H_
#define TANDEM_COORDINATOR_API_AUTH_SCOPE_H_

#include <string_view>

namespace tandem::coordinator {

// What a method needs.
enum class Need {
  kNothing,   // also without a token: health, for probes
  kToken,     // any: reflection
  kGenerate,  // the scope generate
  kAdmin,     // the scope admin: statistics, and whatever is not listed
};

struct Scopes {
  bool generate = false;
  bool admin = false;

  bool Allow(Need need) const {
    return need == Need::kNothing || need == Need::kToken ||
           (need == Need::kGenerate && generate) || (need == Need::kAdmin && admin);
  }
  bool operator==(const Scopes&) const = default;
};

// Of a method by its path, "/tandem.v1.Generation/Generate".
Need NeedOf(std::string_view method);

// "generate", "admin"; for messages.
const char* NameOf(Need need);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_AUTH_SCOPE_H_
