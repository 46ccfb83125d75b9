// SchemaCompiler: json_schema.h's work. Internal to this folder.
#ifndef TANDEM_COORDINATOR_GRAMMAR_SCHEMA_COMPILER_H_
#define TANDEM_COORDINATOR_GRAMMAR_SCHEMA_COMPILER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"
#include "coordinator/grammar/schema_json.h"

namespace tandem::coordinator::grammar {

// What both schemas allow. INVALID_ARGUMENT if that takes more than to put them together.
absl::StatusOr<Json> Merged(Json schema, const Json& other, std::string_view place);

// Whether a keyword says nothing of what is valid; when schemas merge, the first one's stays.
bool IsAnnotation(std::string_view keyword);
// Keywords that are followed, by the type of what they speak of.
bool SpeaksOfObjects(const Json& schema);
bool SpeaksOfArrays(const Json& schema);
bool SpeaksOfStrings(const Json& schema);
bool SpeaksOfNumbers(const Json& schema);
// Whether it says anything of what is valid, apart from a keyword.
bool Constrains(const Json& schema, std::string_view apart_from);
// Whether a value is of one of the types of a schema.
absl::StatusOr<bool> IsOfTypes(const Json& value, const Json& schema, std::string_view place);

// A string of a format that is followed; nothing for others.
std::optional<Expression> StringOfFormat(std::string_view format);
absl::StatusOr<Expression> OfInteger(const Json& schema, const std::string& place);
absl::StatusOr<Expression> OfNumber(const Json& schema, const std::string& place);

// A length or count of the schema, or `otherwise`.
absl::StatusOr<uint32_t> Count(const Json& schema, const char* keyword, uint32_t otherwise,
                               const std::string& place);
absl::Status CheckOrder(uint32_t least, uint32_t most, std::string_view what,
                        const std::string& place);

class SchemaCompiler {
 public:
  explicit SchemaCompiler(const Json& root) : root_(root) {}

  absl::StatusOr<Grammar> Compile();

 private:
  using Part = absl::StatusOr<Expression>;

  // Of a schema in a place.
  Part Of(const Json& schema, const std::string& place, int depth);
  Part OfReference(const Json& schema, const std::string& place, int depth);
  Part OfChoice(const Json& schema, const char* keyword, const std::string& place, int depth);
  Part OfAll(const Json& schema, const std::string& place, int depth);
  Part OfValues(const Json& schema, const std::string& place);
  Part OfTypes(const Json& schema, const std::string& place, int depth);
  Part OfType(std::string_view type, const Json& schema, const std::string& place, int depth);

  Part OfString(const Json& schema, const std::string& place);
  Part OfPattern(const Json& pattern, const std::string& place);
  Part OfArray(const Json& schema, const std::string& place, int depth);
  Part OfObject(const Json& schema, const std::string& place, int depth);

  struct Property {
    Expression member;
    bool required;
  };
  // Those that the schema names, and the names.
  absl::StatusOr<std::vector<Property>> Properties(const Json& schema, const Expression& other,
                                                   const std::string& place, int depth,
                                                   std::vector<std::string>* names);
  // A member whose name is none of `names`.
  Part OtherMember(const std::vector<std::string>& names, Expression value,
                   const std::string& place);
  // Of the properties in order, where all, some or none may be there; then `other` members.
  Expression Members(std::vector<Property> properties, const std::optional<Expression>& other);

  // A rule of it, by its number.
  Expression Ruled(Expression expression);

  struct Target {
    const Json* schema;
    std::string place;
  };
  // What a reference leads to, and further references that are all of a schema.
  absl::StatusOr<Target> Find(const Json& reference, const std::string& place);

  // A short schema can ask for very much: this counts what was done.
  absl::Status Spend(size_t work, const std::string& place);

  const Json& root_;
  size_t work_ = 0;
  std::vector<Expression> rules_;
  absl::flat_hash_map<const Json*, RuleIndex> references_;
  // Where what was referred to leads in the end: to itself unless it only refers further.
  absl::flat_hash_map<const Json*, Target> found_;
  std::map<std::string, RuleIndex, std::less<>> formats_;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_SCHEMA_COMPILER_H_
