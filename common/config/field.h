// Field: one setting of a configuration: its variable, flag name, allowed values and text form. A
// struct lists its settings once, in ForEach(FieldList&); flags, the wire, validation and
// docs/configuration.md follow from that list.
#ifndef TANDEM_COMMON_CONFIG_FIELD_H_
#define TANDEM_COMMON_CONFIG_FIELD_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/config/text_form.h"

namespace tandem::config {

struct FieldMeta {
  std::string_view
      flag{};  // "--model,-m": the name first, then aliases; without dashes: positional
  std::string_view help{};
  // Of numbers, of durations in seconds, of sizes in bytes; both 0: every value of the type.
  double least = 0;
  double most = 0;
  bool reload = false;  // a change makes workers reload the weights
  bool required = false;
};

class Field {
 public:
  // `value` must outlive this; its current value is the default.
  template <typename T>
  Field(T& value, const FieldMeta& meta) : value_(&value), form_(&kFormOf<T>), meta_(meta) {}

  const FieldMeta& meta() const { return meta_; }
  // "max-num-seqs".
  std::string_view name() const;
  // "--max-num-seqs".
  std::string_view flag() const { return meta_.flag.substr(0, meta_.flag.find(',')); }
  // "TANDEM_MAX_NUM_SEQS": the environment variable of the flag.
  std::string variable() const;

  std::string Text() const { return form_->text(value_); }
  // INVALID_ARGUMENT if the text is not of the type, OUT_OF_RANGE for a value that is not allowed;
  // one line: flag, found, allowed. Lists append.
  absl::Status Set(std::string_view text);
  // Set, for what a user wrote: an empty text is a value of texts alone, never "unset".
  absl::Status SetGiven(std::string_view text);
  // OUT_OF_RANGE if the value is not in the range.
  absl::Status Check() const;
  // "cpu, cuda", "1 to 4096", "true or false", "text".
  std::string Allowed() const;

  bool has_names() const { return !form_->names().empty(); }
  bool is_switch() const { return form_->is_switch; }
  bool is_list() const { return form_->clear != nullptr; }
  // A list of what contains no blanks, so that a command line may separate elements by them.
  bool is_word_list() const { return form_->is_word_list; }
  void Clear() { form_->clear(value_); }  // REQUIRES: is_list()

 private:
  struct Form {
    std::string (*text)(const void*);
    bool (*parse)(std::string_view, void*);
    bool (*within)(const void*, double, double);
    std::string (*measured_text)(double);
    void (*clear)(void*);  // lists only
    std::vector<const char*> (*names)();
    const char* expected;
    bool is_signed;
    bool is_text;
    bool is_switch;
    bool is_word_list;
  };
  template <typename T>
  struct Element {
    using Type = T;
    static constexpr bool kIsList = false;
  };
  template <typename T>
  struct Element<std::optional<T>> {
    using Type = T;
    static constexpr bool kIsList = false;
  };
  template <typename T>
  struct Element<std::vector<T>> {
    using Type = T;
    static constexpr bool kIsList = true;
  };

  template <typename T>
  static std::vector<const char*> NamesOf() {
    std::vector<const char*> names;
    if constexpr (NamedEnum<T>) {
      for (const auto& [value, name] : EnumNames<T>::kNames) names.push_back(name);
    }
    return names;
  }
  template <typename T>
  static void ClearOf(void* value) {
    if constexpr (Element<T>::kIsList) static_cast<T*>(value)->clear();
  }

  template <typename T>
  static constexpr Form kFormOf = {
      .text = [](const void* value) { return ToText(*static_cast<const T*>(value)); },
      .parse = [](std::string_view text,
                  void* value) { return FromText(text, *static_cast<T*>(value)); },
      .within = [](const void* value, double least,
                   double most) { return Within(*static_cast<const T*>(value), least, most); },
      .measured_text =
          [](double value) { return ToText(Measured<typename Element<T>::Type>::From(value)); },
      .clear = Element<T>::kIsList ? &ClearOf<T> : nullptr,
      .names = &NamesOf<typename Element<T>::Type>,
      .expected = Expected<typename Element<T>::Type>(),
      .is_signed = !std::is_unsigned_v<typename Element<T>::Type>,
      .is_text = std::is_same_v<typename Element<T>::Type, std::string>,
      .is_switch = std::is_same_v<T, bool>,
      .is_word_list =
          Element<T>::kIsList && !std::is_same_v<typename Element<T>::Type, std::string>,
  };

  // INVALID_ARGUMENT for a text that is not of the type.
  absl::Status Malformed(std::string_view text) const;
  bool has_range() const { return meta_.least != 0 || meta_.most != 0; }

  void* value_;
  const Form* form_;
  FieldMeta meta_;
};

// The settings of a configuration in order, grouped into titled sections.
class FieldList {
 public:
  struct Section {
    std::string_view title;
    std::vector<Field> fields;
  };

  void BeginSection(std::string_view title) { sections_.push_back({title, {}}); }
  // REQUIRES: BeginSection was called.
  template <typename T>
  void operator()(T& value, const FieldMeta& meta) {
    sections_.back().fields.emplace_back(value, meta);
  }

  const std::vector<Section>& sections() const { return sections_; }
  std::vector<Field> All() const;

 private:
  std::vector<Section> sections_;
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_FIELD_H_
