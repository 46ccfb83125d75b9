#include "coordinator/api/grpc/wire.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace tandem::coordinator {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// The path of the first string in `bytes` that is not UTF-8, such as "sampling.stop[1]", and where
// it stops being so; empty if there is none.
std::string TextAtFault(const Descriptor& type, const std::string& bytes) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) return "";
  std::map<int, int> counts;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& found = fields.field(i);
    const FieldDescriptor* field = type.FindFieldByNumber(found.number());
    if (field == nullptr || found.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    std::string name = field->name();
    if (field->is_repeated()) absl::StrAppend(&name, "[", counts[found.number()]++, "]");
    const std::string& value = found.length_delimited();
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      const size_t valid = ValidUtf8Prefix(value);
      if (valid < value.size()) return absl::StrCat(name, " is not UTF-8 from byte ", valid, " on");
    } else if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      const std::string inner = TextAtFault(*field->message_type(), value);
      if (!inner.empty()) return absl::StrCat(name, ".", inner);
    }
  }
  return "";
}

std::string Flatten(const grpc::ByteBuffer& bytes) {
  grpc::Slice whole;
  if (!bytes.DumpToSingleSlice(&whole).ok()) return "";
  return {reinterpret_cast<const char*>(whole.begin()), whole.size()};
}

}  // namespace

absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  grpc::ByteBuffer read = bytes;  // by reference
  grpc::ProtoBufferReader reader(&read);
  if (reader.status().ok() && message.ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  const Descriptor& type = *message.GetDescriptor();
  const std::string at_fault = TextAtFault(type, Flatten(bytes));
  return absl::InvalidArgumentError(
      at_fault.empty()
          ? absl::StrCat("the request is not a ", type.full_name(), ": malformed protobuf")
          : absl::StrCat(type.full_name(), ".", at_fault));
}

grpc::ByteBuffer Serialize(const google::protobuf::Message& message) {
  const size_t size = message.ByteSizeLong();
  grpc::Slice slice(size);
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return {&slice, 1};
}

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace tandem::coordinator
