#include "common/config/field.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace tandem::config {

std::string_view Field::name() const {
  const std::string_view first = flag();
  return first.substr(std::min(first.find_first_not_of('-'), first.size()));
}

std::string Field::Allowed() const {
  if (has_names()) return absl::StrJoin(form_->names(), ", ");
  if (!has_range()) return form_->expected;
  return absl::StrCat(form_->measured_text(meta_.least), " to ", form_->measured_text(meta_.most));
}

absl::Status Field::Set(std::string_view text) {
  if (form_->parse(text, value_)) return Check();
  if (has_names()) {
    return absl::OutOfRangeError(
        absl::StrCat(Sv(flag()), " is '", Sv(text), "', it must be one of ", Allowed()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Sv(flag()), " is '", Sv(text), "', it must be ", form_->expected,
                   has_range() ? absl::StrCat(" from ", Allowed()) : ""));
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
