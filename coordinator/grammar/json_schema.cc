#include "coordinator/grammar/json_schema.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/grammar/json.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
absl::StatusOr<Grammar> GrammarOfSchema(std::string_view schema) {
  if (schema.size() > kMaxSchemaBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the JSON schema has ", schema.size(), " bytes, at most ", kMaxSchemaBytes));
  }
  TANDEM_ASSIGN_OR_RETURN(const Json root, SchemaJson(schema));
  return SchemaCompiler(root).Compile();
}

Grammar GrammarOfAnyObject() { return JsonGrammar(JsonObject()); }

}  // namespace tandem::coordinator::grammar
