#include "client/stats_text.h"

#include "absl/strings/str_format.h"

namespace tandem::client {
// All fields are int64; a field of another type would not be a counter.
std::vector<std::pair<std::string, int64_t>> StatFields(const v1::GetStatsResponse& stats) {
  std::vector<std::pair<std::string, int64_t>> fields;
  const google::protobuf::Descriptor& descriptor = *stats.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = descriptor.field(i);
    fields.emplace_back(field->name(), stats.GetReflection()->GetInt64(stats, field));
  }
  return fields;
}

std::string FormatStats(const v1::GetStatsResponse& stats) {
  std::string text;
  for (const auto& [name, value] : StatFields(stats)) {
    absl::StrAppendFormat(&text, "%-14s %d\n", name, value);
  }
  return text;
}

}  // namespace tandem::client
