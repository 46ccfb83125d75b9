#include "coordinator/api/grpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/api/grpc/service_names.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {
namespace {

namespace v1 = grpc::reflection::v1;
using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

void NotFound(const std::string& what, v1::ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message(absl::StrCat("there is no ", what));
}

// The file and, each once, those that it imports.
void AddFile(const FileDescriptor& file, std::set<std::string>& added,
             v1::FileDescriptorResponse& response) {
  if (!added.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, response);
}

void Answer(const FileDescriptor* file, const std::string& what,
            v1::ServerReflectionResponse& response) {
  if (file == nullptr) return NotFound(what, response);
  std::set<std::string> added;
  AddFile(*file, added, *response.mutable_file_descriptor_response());
}

void AnswerExtension(const v1::ExtensionRequest& wanted, v1::ServerReflectionResponse& response) {
  const Descriptor* type = Pool().FindMessageTypeByName(wanted.containing_type());
  const FieldDescriptor* found =
      type == nullptr ? nullptr : Pool().FindExtensionByNumber(type, wanted.extension_number());
  Answer(found == nullptr ? nullptr : found->file(),
         absl::StrCat("extension ", wanted.extension_number(), " of ", wanted.containing_type()),
         response);
}

void AnswerExtensionNumbers(const std::string& name, v1::ServerReflectionResponse& response) {
  const Descriptor* type = Pool().FindMessageTypeByName(name);
  if (type == nullptr) return NotFound(absl::StrCat("message ", name), response);
  std::vector<const FieldDescriptor*> found;
  Pool().FindAllExtensions(type, &found);
  response.mutable_all_extension_numbers_response()->set_base_type_name(name);
  for (const FieldDescriptor* field : found) {
    response.mutable_all_extension_numbers_response()->add_extension_number(field->number());
  }
}

}  // namespace

v1::ServerReflectionResponse Reflect(const v1::ServerReflectionRequest& request) {
  v1::ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case v1::ServerReflectionRequest::kFileByFilename:
      Answer(Pool().FindFileByName(request.file_by_filename()),
             absl::StrCat("file ", request.file_by_filename()), response);
      break;
    case v1::ServerReflectionRequest::kFileContainingSymbol:
      Answer(Pool().FindFileContainingSymbol(request.file_containing_symbol()),
             absl::StrCat("symbol ", request.file_containing_symbol()), response);
      break;
    case v1::ServerReflectionRequest::kFileContainingExtension:
      AnswerExtension(request.file_containing_extension(), response);
      break;
    case v1::ServerReflectionRequest::kAllExtensionNumbersOfType:
      AnswerExtensionNumbers(request.all_extension_numbers_of_type(), response);
      break;
    case v1::ServerReflectionRequest::kListServices:
      for (const char* service : kPublicServices) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case v1::ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("the request asks for nothing");
      break;
  }
  return response;
}

// One answer at a time; the next request is read when it is written.
class ReflectionService::Stream : public Reactor {
 public:
  explicit Stream(ReflectionService& service) : call_(service.calls_), service_(service) {
    MutexLock lock(service_.mutex_);
    service_.streams_.insert(this);
    if (service_.closed_) {
      End(kClosed);
    } else {
      StartRead(&incoming_);
    }
  }

  void OnReadDone(bool ok) override {
    v1::ServerReflectionRequest request;
    const absl::Status parsed = ok ? Parse(incoming_, request) : absl::OkStatus();
    if (ok && parsed.ok()) outgoing_ = Serialize(Reflect(request));
    MutexLock lock(service_.mutex_);
    if (!ok || !parsed.ok()) return End(ToGrpc(parsed));
    if (!ended_) StartWrite(&outgoing_);
  }
  void OnWriteDone(bool ok) override {
    MutexLock lock(service_.mutex_);
    if (!ok) return End(kClosed);
    if (!ended_) StartRead(&incoming_);
  }
  void OnCancel() override {
    MutexLock lock(service_.mutex_);
    End(kClosed);
  }
  void OnDone() override {
    {
      MutexLock lock(service_.mutex_);
      service_.streams_.erase(this);
    }
    delete this;
  }

  // Under the service's mutex.
  void Close() { End(kClosed); }

 private:
  inline static const grpc::Status kClosed{grpc::StatusCode::UNAVAILABLE,
                                           "the server is shutting down"};

  void End(const grpc::Status& status) {
    if (std::exchange(ended_, true)) return;
    Finish(status);
  }

  const OpenCalls::Call call_;
  ReflectionService& service_;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  bool ended_ = false;  // guarded by the service's mutex
};

ReflectionService::ReflectionService(OpenCalls& calls)
    : v1_(*this), v1alpha_(*this), calls_(calls) {}

void ReflectionService::AddTo(grpc::ServerBuilder& builder) {
  builder.RegisterService(&v1_);
  builder.RegisterService(&v1alpha_);
}

void ReflectionService::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  for (Stream* stream : streams_) stream->Close();
}

ReflectionService::Reactor* ReflectionService::NewStream() {
  return new Stream(*this);  // deletes itself in OnDone
}

}  // namespace tandem::coordinator
