#include "common/gguf/split.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"

namespace tandem::gguf {
namespace {

constexpr std::string_view kEnding = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr size_t kDigits = 5;
constexpr uint32_t kMaxFiles = 99999;

// Removes `ending` from `text`; false if it does not end with it.
bool Chop(std::string_view ending, std::string_view* text) {
  if (text->size() < ending.size()) return false;
  if (text->substr(text->size() - ending.size()) != ending) return false;
  text->remove_suffix(ending.size());
  return true;
}

// Removes five digits from the end.
bool ChopNumber(uint32_t* number, std::string_view* text) {
  if (text->size() < kDigits) return false;
  const std::string_view digits = text->substr(text->size() - kDigits);
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return false;
  text->remove_suffix(kDigits);
  return absl::SimpleAtoi(Sv(digits), number);
}

absl::Status Different(std::string_view key, uint64_t needed, uint64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("key ", Quoted(key), ": needed ", needed, ", found ", found));
}

}  // namespace

absl::StatusOr<SplitKeys> ReadSplitKeys(const Metadata& metadata) {
  SplitKeys keys;
  TANDEM_ASSIGN_OR_RETURN(const std::optional<uint32_t> count,
                          metadata.FindUint32(keys::kSplitCount));
  // 0 is left by tools that join the files.
  if (count.value_or(0) <= 1) return keys;
  if (*count > kMaxFiles) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", Quoted(keys::kSplitCount), ": needed at most ", kMaxFiles, ", found ", *count));
  }
  keys.count = *count;
  for (const std::string_view key : {keys::kSplitNumber, keys::kSplitTensors}) {
    if (metadata.Has(key)) continue;
    return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(key), " is missing, but ",
                                                   Quoted(keys::kSplitCount), " is ", *count));
  }
  TANDEM_ASSIGN_OR_RETURN(keys.number, metadata.GetUint32(keys::kSplitNumber));
  TANDEM_ASSIGN_OR_RETURN(keys.num_tensors, metadata.GetUint64(keys::kSplitTensors));
  if (keys.number >= keys.count) {
    return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(keys::kSplitNumber),
                                                   ": needed less than the ", keys.count,
                                                   " of the files, found ", keys.number));
  }
  return keys;
}

std::optional<SplitPath> SplitPath::Parse(std::string_view path) {
  SplitPath parsed;
  uint32_t from_one = 0;
  if (!Chop(kEnding, &path) || !ChopNumber(&parsed.count, &path) || !Chop(kOf, &path) ||
      !ChopNumber(&from_one, &path) || !Chop("-", &path)) {
    return std::nullopt;
  }
  if (from_one < 1 || from_one > parsed.count) return std::nullopt;
  parsed.number = from_one - 1;
  parsed.prefix = path;
  return parsed;
}

std::string SplitPath::Sibling(uint32_t other) const {
  return absl::StrFormat("%s-%05u-of-%05u.gguf", prefix, other + 1, count);
}

std::string_view FileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

absl::Status CheckFirstFile(std::string_view path, const SplitKeys& keys) {
  const std::optional<SplitPath> name = SplitPath::Parse(path);
  const std::string which = absl::StrCat("this is file ", keys.number + 1, " of the ", keys.count,
                                         " that the model is split over");
  if (!name.has_value() || name->count != keys.count || name->number != keys.number) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s, but its name does not end in \"-%05u-of-%05u.gguf\", so that the "
                        "others cannot be found",
                        which, keys.number + 1, keys.count));
  }
  if (keys.number == 0) return absl::OkStatus();
  const std::string first = name->Sibling(0);
  return absl::InvalidArgumentError(
      absl::StrCat(which, "; open the first one, ", Quoted(FileName(first))));
}

absl::Status CheckLaterFile(const SplitKeys& first, uint32_t number, const SplitKeys& keys) {
  if (!keys.split()) {
    return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(keys::kSplitCount), ": needed ",
                                                   first.count, ", found none: it is not split"));
  }
  if (keys.count != first.count) return Different(keys::kSplitCount, first.count, keys.count);
  if (keys.number != number) return Different(keys::kSplitNumber, number, keys.number);
  if (keys.num_tensors != first.num_tensors) {
    return Different(keys::kSplitTensors, first.num_tensors, keys.num_tensors);
  }
  return absl::OkStatus();
}

}  // namespace tandem::gguf
