#include "common/config/field.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace tandem::config {
std::string_view Field::name() const {
  const std::string_view first = flag();
  return first.substr(std::min(first.find_first_not_of('-'), first.size()));
}

std::string Field::variable() const {
  std::string variable = absl::StrCat("TANDEM_", absl::AsciiStrToUpper(Sv(name())));
  std::replace(variable.begin(), variable.end(), '-', '_');
  return variable;
}

std::string Field::Allowed() const {
  if (has_names()) return absl::StrJoin(form_->names(), ", ");
  if (has_range()) {
    return absl::StrCat(form_->measured_text(meta_.least), " to ",
                        form_->measured_text(meta_.most));
  }
  const bool signless = !form_->is_signed && !is_switch();
  return absl::StrCat(form_->expected, signless ? " of at least 0" : "");
}

absl::Status Field::Malformed(std::string_view text) const {
  const std::string found = absl::StrCat(Sv(flag()), " is ", Quoted(text), ", it must be ");
  if (has_names()) return absl::OutOfRangeError(absl::StrCat(found, "one of ", Allowed()));
  const std::string range = absl::StrCat(form_->expected, " from ", Allowed());
  return absl::InvalidArgumentError(absl::StrCat(found, has_range() ? range : Allowed()));
}

absl::Status Field::Set(std::string_view text) {
  if (!form_->parse(text, value_)) return Malformed(text);
  return Check();
}

absl::Status Field::SetGiven(std::string_view text) {
  return text.empty() && !form_->is_text ? Malformed(text) : Set(text);
}

absl::Status Field::Check() const {
  if (!has_range() || form_->within(value_, meta_.least, meta_.most)) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat(Sv(flag()), " is ", Text(), ", it must be from ", Allowed()));
}

std::vector<Field> FieldList::All() const {
  std::vector<Field> all;
  for (const Section& section : sections_) {
    all.insert(all.end(), section.fields.begin(), section.fields.end());
  }
  return all;
}

}  // namespace tandem::config
