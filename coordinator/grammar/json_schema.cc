#include "coordinator/grammar/json_schema.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/grammar/json.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr int kMaxJsonDepth = 512;

// Reads nothing: how deep a text nests, so that what is read recursively later is bounded.
class DepthCheck : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return ++depth_ <= kMaxJsonDepth; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(size_t) override { return ++depth_ <= kMaxJsonDepth; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<Grammar> GrammarOfSchema(std::string_view schema) {
  if (schema.size() > kMaxSchemaBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the JSON schema has ", schema.size(), " bytes, at most ", kMaxSchemaBytes));
  }
  DepthCheck depth;
  if (!Json::sax_parse(schema, &depth)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the JSON schema is no JSON text, or nests deeper than ", kMaxJsonDepth));
  }
  const Json root = Json::parse(schema, nullptr, /*allow_exceptions=*/false);
  return SchemaCompiler(root).Compile();
}

Grammar GrammarOfAnyObject() { return {{JsonObject(1), JsonValue(1)}}; }

}  // namespace tandem::coordinator::grammar
