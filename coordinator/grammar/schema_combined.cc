// Schemas that are made of others: references, choices, and what holds together.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
namespace {

// Of the fragment of a URI.
std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    int byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) &&
        absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2])) &&
        absl::SimpleHexAtoi(Sv(text.substr(i + 1, 2)), &byte)) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}
std::string WithoutTildes(std::string_view step) {
  std::string name;
  for (size_t i = 0; i < step.size(); ++i) {
    const bool escaped = step[i] == '~' && i + 1 < step.size();
    name += escaped ? (step[++i] == '1' ? '/' : '~') : step[i];
  }
  return name;
}

// An element of an array or a member of an object; null if there is none.
const Json* ElementOf(const Json& of, const std::string& name) {
  if (of.is_object()) {
    const auto found = of.find(name);
    return found == of.end() ? nullptr : &*found;
  }
  size_t index = 0;
  const bool is_index = of.is_array() && absl::SimpleAtoi(name, &index) && index < of.size() &&
                        name == std::to_string(index);
  return is_index ? &of[index] : nullptr;
}

// What a reference to a part of the document leads to; null if nothing is there. `place` is "#".
const Json* Lookup(const Json& root, std::string_view reference, std::string* place) {
  if (!reference.starts_with("#")) return nullptr;
  const std::string decoded = PercentDecoded(reference.substr(1));
  const Json* at = &root;
  for (std::string_view left = decoded; !left.empty();) {
    if (left[0] != '/') return nullptr;
    left.remove_prefix(1);
    const std::string_view step = left.substr(0, left.find('/'));
    left.remove_prefix(step.size());
    const std::string name = WithoutTildes(step);
    at = ElementOf(*at, name);
    if (at == nullptr) return nullptr;
    *place = Below(*place, name);
  }
  return at;
}

// What it says of validation but for a keyword.
Json Without(const Json& schema, std::string_view keyword) {
  Json rest = Json::object();
  auto& members = rest.get_ref<Json::object_t&>();
  for (const auto& member : schema.get_ref<const Json::object_t&>()) {
    if (member.first != keyword && !IsAnnotation(member.first)) members.emplace_back(member);
  }
  return rest;
}

// Whether a reference is all that it says.
bool OnlyRefers(const Json& schema) {
  if (!schema.is_object() || !schema.contains("$ref")) return false;
  return std::ranges::all_of(schema.get_ref<const Json::object_t&>(), [](const auto& member) {
    return member.first == "$ref" || (IsAnnotation(member.first) && member.first != "$id");
  });
}

// Of putting two together: names of the one are looked up among the other's.
size_t WorkOfMerging(const Json& one, const Json& other) {
  size_t work = SizeOf(one) + SizeOf(other);
  if (!one.is_object() || !other.is_object()) return work;
  for (const char* names : {"properties", "required"}) {
    if (!one.contains(names) || !other.contains(names)) continue;
    work += one[names].size() * other[names].size() / 16;
  }
  return work;
}

}  // namespace

absl::StatusOr<SchemaCompiler::Target> SchemaCompiler::Find(const Json& reference,
                                                            const std::string& place) {
  absl::flat_hash_set<const Json*> seen;
  const auto found = [&](const Target& target) {
    for (const Json* schema : seen) found_[schema] = target;
    return target;
  };
  for (const Json* next = &reference;;) {
    if (!next->is_string()) return BadSchema(place, "\"$ref\" is not a string");
    const auto& text = next->get_ref<const std::string&>();
    TANDEM_RETURN_IF_ERROR(Spend(4 + text.size() / 4, place));
    Target target{nullptr, "#"};
    target.schema = Lookup(root_, text, &target.place);
    if (target.schema == nullptr) {
      return BadSchema(place, absl::StrCat("\"$ref\" to ", Excerpt(text), ", which is not in it"));
    }
    const auto known = found_.find(target.schema);
    if (known != found_.end()) return found(Target(known->second));
    if (!seen.insert(target.schema).second) {
      return BadSchema(place,
                       absl::StrCat("\"$ref\" to ", Excerpt(text), ", which refers to itself"));
    }
    if (!OnlyRefers(*target.schema)) return found(target);
    next = &(*target.schema)["$ref"];
  }
}

SchemaCompiler::Part SchemaCompiler::OfReference(const Json& schema, const std::string& place,
                                                 int depth) {
  if (Constrains(schema, "$ref")) {
    return BadSchema(place, "other keywords beside \"$ref\" are not supported");
  }
  TANDEM_ASSIGN_OR_RETURN(const Target target, Find(schema["$ref"], place));
  const auto [known, is_new] =
      references_.try_emplace(target.schema, static_cast<RuleIndex>(rules_.size()));
  if (!is_new) return Rule(known->second);
  const RuleIndex rule = Ruled(Choice({})).rule;
  TANDEM_ASSIGN_OR_RETURN(Expression referred, Of(*target.schema, target.place, depth + 1));
  rules_[rule] = std::move(referred);
  return Rule(rule);
}

SchemaCompiler::Part SchemaCompiler::OfChoice(const Json& schema, const char* keyword,
                                              const std::string& place, int depth) {
  const Json& branches = schema[keyword];
  const std::string below = Below(place, keyword);
  if (!branches.is_array() || branches.empty()) return BadSchema(below, "is not a list of schemas");
  const bool alone = !Constrains(schema, keyword);
  const Json rest = alone ? Json::object() : Without(schema, keyword);
  Expression choice = Choice({});
  for (size_t i = 0; i < branches.size(); ++i) {
    const std::string branch = Below(below, i);
    Json merged;
    if (!alone) {
      TANDEM_RETURN_IF_ERROR(Spend(WorkOfMerging(rest, branches[i]), branch));
      TANDEM_ASSIGN_OR_RETURN(merged, Merged(rest, branches[i], branch));
    }
    TANDEM_ASSIGN_OR_RETURN(Expression one, Of(alone ? branches[i] : merged, branch, depth + 1));
    choice.parts.push_back(std::move(one));
  }
  return choice;
}

SchemaCompiler::Part SchemaCompiler::OfAll(const Json& schema, const std::string& place,
                                           int depth) {
  const Json& parts = schema["allOf"];
  const std::string below = Below(place, "allOf");
  if (!parts.is_array() || parts.empty()) return BadSchema(below, "is not a list of schemas");
  if (parts.size() == 1 && !Constrains(schema, "allOf")) {
    return Of(parts[0], Below(below, 0), depth + 1);
  }
  Json all = Without(schema, "allOf");
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = Below(below, i);
    const Json* found = &parts[i];
    if (OnlyRefers(*found)) {
      TANDEM_ASSIGN_OR_RETURN(const Target target, Find((*found)["$ref"], part));
      found = target.schema;
    }
    TANDEM_RETURN_IF_ERROR(Spend(WorkOfMerging(all, *found), part));
    TANDEM_ASSIGN_OR_RETURN(all, Merged(std::move(all), *found, part));
  }
  return Of(all, place, depth + 1);
}

}  // namespace tandem::coordinator::grammar
