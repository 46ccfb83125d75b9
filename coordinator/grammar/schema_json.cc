#include "coordinator/grammar/schema_json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr size_t kMostExcerpt = 60;
constexpr size_t kMostPlace = 600;

// Builds the values. False, which ends the reading, where a bound is met.
class Reader : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t, const string_t& text) override {
    return Add(Json::binary({text.begin(), text.end()}));
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(Json::object()); }
  bool key(string_t& name) override {
    name_ = std::move(name);
    Opened& object = open_.back();
    if (!object.names.insert(name_).second) {
      what_ = absl::StrCat("the name ", Excerpt(name_), " stands twice in an object");
    } else if (object.names.size() > kMaxJsonMembers) {
      what_ = absl::StrCat("an object has more than ", kMaxJsonMembers, " members");
    }
    return what_.empty();
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    what_ = absl::StrCat("no JSON text at byte ", at);
    return false;
  }

  Json& root() { return root_; }
  const std::string& what() const { return what_; }

 private:
  // Nothing is added to a value while another in it is open, so that the pointer stays.
  struct Opened {
    Json* value;
    absl::flat_hash_set<std::string> names;  // of an object
  };

  Json* Place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back().value;
    if (parent.is_object()) {
      return &parent.get_ref<Json::object_t&>().emplace_back(name_, std::move(value)).second;
    }
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(Json value) {
    open_.push_back({Place(std::move(value)), {}});
    if (open_.size() <= kMaxJsonDepth) return true;
    what_ = absl::StrCat("it nests deeper than ", kMaxJsonDepth);
    return false;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Opened> open_;
  std::string name_;
  std::string what_;
};

}  // namespace

absl::StatusOr<Json> SchemaJson(std::string_view text) {
  Reader reader;
  if (Json::sax_parse(text, &reader)) return std::move(reader.root());
  return absl::InvalidArgumentError(absl::StrCat("JSON schema: ", reader.what()));
}

std::string JsonText(const Json& value) {
  if (value.is_binary()) return {value.get_binary().begin(), value.get_binary().end()};
  if (!value.is_structured()) return value.dump();
  std::string text(1, value.is_object() ? '{' : '[');
  for (const auto& [name, one] : value.items()) {
    if (text.size() > 1) text += ",";
    if (value.is_object()) absl::StrAppend(&text, Json(name).dump(), ":");
    text += JsonText(one);
  }
  text += value.is_object() ? '}' : ']';
  return text;
}

size_t SizeOf(const Json& value) {
  constexpr size_t kBytesOfOne = 16;
  if (value.is_string()) return 1 + value.get_ref<const std::string&>().size() / kBytesOfOne;
  if (value.is_binary()) return 1 + value.get_binary().size() / kBytesOfOne;
  size_t size = 1;
  if (value.is_array()) {
    for (const Json& one : value) size += SizeOf(one);
  } else if (value.is_object()) {
    for (const auto& [name, one] : value.get_ref<const Json::object_t&>()) {
      size += 1 + name.size() / kBytesOfOne + SizeOf(one);
    }
  }
  return size;
}

std::string Excerpt(std::string_view text) {
  const bool cut = text.size() > kMostExcerpt;
  std::string_view kept = text.substr(0, kMostExcerpt);
  kept = kept.substr(0, ValidUtf8Prefix(kept));
  // As in a JSON string, without control characters.
  const std::string quoted = Json(kept).dump();
  return absl::StrCat(quoted.substr(1, quoted.size() - 2), cut ? "..." : "");
}

std::string Below(std::string_view place, std::string_view name) {
  std::string step;
  for (const char c : Excerpt(name)) {
    if (c == '~' || c == '/') {
      step += c == '~' ? "~0" : "~1";
    } else {
      step += c;
    }
  }
  return absl::StrCat(Sv(place), "/", step);
}
std::string Below(std::string_view place, size_t index) {
  return absl::StrCat(Sv(place), "/", index);
}

absl::Status BadSchema(std::string_view place, std::string_view what) {
  std::string where(place);
  if (place.size() > kMostPlace) {
    std::string_view end = place.substr(place.size() - kMostPlace / 2);
    end = end.substr(std::min(end.find('/'), end.size()));
    where = absl::StrCat(Excerpt(place), Sv(end));
  }
  return absl::InvalidArgumentError(absl::StrCat("JSON schema, ", where, ": ", Sv(what)));
}

}  // namespace tandem::coordinator::grammar
