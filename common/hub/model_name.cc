#include "common/hub/model_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"

namespace tandem::hub {
namespace {

constexpr std::string_view kScheme = "hf:";
// The hub's own limit.
constexpr size_t kMaxPartLength = 96;
constexpr size_t kMaxRevisionLength = 200;
constexpr size_t kMaxChoiceLength = 512;
constexpr size_t kCommitDigits = 40;

// An owner or a repository. "--" separates them in the cache's folder names, so neither has it.
bool IsPart(std::string_view part) {
  return !part.empty() && part.size() <= kMaxPartLength && part.front() != '-' &&
         part.front() != '.' && part.find("..") == part.npos && part.find("--") == part.npos &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

// "main", "v1.0", "refs/pr/1": path segments, none of which leads elsewhere.
bool IsRevision(std::string_view revision) {
  if (revision.empty() || revision.size() > kMaxRevisionLength) return false;
  for (const absl::string_view name : absl::StrSplit(Sv(revision), '/')) {
    const bool safe =
        !name.empty() && name.front() != '.' && name.front() != '-' &&
        std::all_of(name.begin(), name.end(), [](char c) {
          return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.' || c == '+';
        });
    if (!safe) return false;
  }
  return true;
}

}  // namespace

bool IsCommit(std::string_view text) {
  return text.size() == kCommitDigits &&
         std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

bool ModelName::Is(std::string_view text) { return text.starts_with(kScheme); }

absl::StatusOr<ModelName> ModelName::Parse(std::string_view text) {
  const absl::Status malformed = absl::InvalidArgumentError(absl::StrCat(
      gguf::Quoted(text), " does not name a model: needed hf:OWNER/REPO[@REVISION][:QUANT]"));
  if (!Is(text)) return malformed;
  std::string_view rest = text.substr(kScheme.size());
  const size_t colon = rest.find(':');
  ModelName name;
  if (colon != rest.npos) {
    name.choice = rest.substr(colon + 1);
    if (name.choice.empty() || name.choice.size() > kMaxChoiceLength) return malformed;
    rest = rest.substr(0, colon);
  }
  if (const size_t at = rest.find('@'); at != rest.npos) {
    name.revision = rest.substr(at + 1);
    if (!IsRevision(name.revision)) return malformed;
    rest = rest.substr(0, at);
  }
  const size_t slash = rest.find('/');
  if (slash == rest.npos) return malformed;
  name.owner = rest.substr(0, slash);
  name.repo = rest.substr(slash + 1);
  if (!IsPart(name.owner) || !IsPart(name.repo)) return malformed;
  return name;
}

std::string ModelName::Repository() const { return absl::StrCat(owner, "/", repo); }

bool ModelName::pinned() const { return IsCommit(revision); }

std::string ModelName::Text() const {
  const bool main = revision == ModelName().revision;
  return absl::StrCat(Sv(kScheme), Repository(), main ? "" : "@", main ? "" : revision,
                      choice.empty() ? "" : ":", choice);
}

}  // namespace tandem::hub
