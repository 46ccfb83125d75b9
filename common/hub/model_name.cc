#include "common/hub/model_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"

namespace tandem::hub {
namespace {

constexpr std::string_view kScheme = "hf:";
// The hub's own limit.
constexpr size_t kMaxPartLength = 96;
constexpr size_t kMaxChoiceLength = 512;

// An owner or a repository. "--" separates them in the cache's folder names, so neither has it.
bool IsPart(std::string_view part) {
  return !part.empty() && part.size() <= kMaxPartLength && part.front() != '-' &&
         part.front() != '.' && part.find("..") == part.npos && part.find("--") == part.npos &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

bool ModelName::Is(std::string_view text) { return text.starts_with(kScheme); }

absl::StatusOr<ModelName> ModelName::Parse(std::string_view text) {
  const absl::Status malformed = absl::InvalidArgumentError(
      absl::StrCat(gguf::Quoted(text), " does not name a model: needed hf:OWNER/REPO[:QUANT]"));
  if (!Is(text)) return malformed;
  std::string_view rest = text.substr(kScheme.size());
  const size_t colon = rest.find(':');
  ModelName name;
  if (colon != rest.npos) {
    name.choice = rest.substr(colon + 1);
    if (name.choice.empty() || name.choice.size() > kMaxChoiceLength) return malformed;
    rest = rest.substr(0, colon);
  }
  const size_t slash = rest.find('/');
  if (slash == rest.npos) return malformed;
  name.owner = rest.substr(0, slash);
  name.repo = rest.substr(slash + 1);
  if (!IsPart(name.owner) || !IsPart(name.repo)) return malformed;
  return name;
}

std::string ModelName::Repository() const { return absl::StrCat(owner, "/", repo); }

std::string ModelName::Text() const {
  return absl::StrCat(Sv(kScheme), Repository(), choice.empty() ? "" : ":", choice);
}

}  // namespace tandem::hub
