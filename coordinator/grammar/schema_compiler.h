// SchemaCompiler: json_schema.h's work. Internal to this folder.
#ifndef TANDEM_COORDINATOR_GRAMMAR_SCHEMA_COMPILER_H_
#define TANDEM_COORDINATOR_GRAMMAR_SCHEMA_COMPILER_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

using Json = nlohmann::ordered_json;

// `what` is wrong at a place of the schema, which is a JSON pointer.
absl::Status BadSchema(std::string_view place, std::string_view what);
// What both schemas allow. INVALID_ARGUMENT if that takes more than to put them together.
absl::StatusOr<Json> Merged(Json schema, const Json& other, std::string_view place);

class SchemaCompiler {
 public:
  explicit SchemaCompiler(const Json& root) : root_(root) {}

  absl::StatusOr<Grammar> Compile();

 private:
  using Part = absl::StatusOr<Expression>;

  static constexpr RuleIndex kStart = 0;
  static constexpr RuleIndex kAnyValue = 1;

  // Of a schema in a place.
  Part Of(const Json& schema, const std::string& place, int depth);
  Part OfKeywords(Json schema, const std::string& place, int depth);
  Part OfReference(const Json& schema, const std::string& place, int depth);
  Part OfChoice(Json schema, std::string_view keyword, const std::string& place, int depth);
  Part OfAll(Json schema, const std::string& place, int depth);
  Part OfValues(const Json& schema, const std::string& place);
  Part OfTypes(const Json& schema, const std::string& place, int depth);
  Part OfType(std::string_view type, const Json& schema, const std::string& place, int depth);

  Part OfString(const Json& schema, const std::string& place);
  Part OfInteger(const Json& schema, const std::string& place);
  Part OfNumber(const Json& schema, const std::string& place);
  Part OfArray(const Json& schema, const std::string& place, int depth);
  Part OfObject(const Json& schema, const std::string& place, int depth);

  struct Property {
    Expression member;
    bool required;
  };
  absl::StatusOr<std::vector<Property>> Properties(const Json& schema, const Json& others,
                                                   const std::string& place, int depth);
  // Of the properties in order, where all, some or none may be there; then `other` members.
  Expression Members(const std::vector<Property>& properties,
                     const std::optional<Expression>& other);

  RuleIndex NewRule(Expression expression);
  // What a reference of this document leads to; null if nothing is there.
  const Json* Find(std::string_view reference) const;

  // What was done so far: a short schema can ask for very much.
  absl::Status Spend(size_t* done, size_t most, const std::string& place);

  const Json& root_;
  size_t num_schemas_ = 0;
  size_t num_merged_ = 0;
  std::vector<Expression> rules_;
  std::map<std::string, RuleIndex> references_;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_SCHEMA_COMPILER_H_
