#include "coordinator/api/auth/scope.h"

namespace tandem::coordinator {
namespace {

struct Row {
  std::string_view methods;  // a path, or the beginning of several, which ends with '/'
  Need need;
};

constexpr Row kTable[] = {
    {"/grpc.health.v1.Health/", Need::kNothing},
    {"/grpc.reflection.v1.ServerReflection/", Need::kToken},
    {"/grpc.reflection.v1alpha.ServerReflection/", Need::kToken},
    {"/tandem.v1.Generation/Generate", Need::kGenerate},
    {"/tandem.v1.Generation/Embed", Need::kGenerate},
    {"/tandem.v1.Generation/Score", Need::kGenerate},
    {"/tandem.v1.Generation/Tokenize", Need::kGenerate},
    {"/tandem.v1.Generation/Detokenize", Need::kGenerate},
    {"/tandem.v1.Generation/GetModelInfo", Need::kGenerate},
    {"/vllm.grpc.engine.VllmEngine/Generate", Need::kGenerate},
    {"/vllm.grpc.engine.VllmEngine/Abort", Need::kGenerate},
    {"/vllm.grpc.engine.VllmEngine/HealthCheck", Need::kToken},
    {"/vllm.grpc.engine.VllmEngine/GetModelInfo", Need::kGenerate},
};

bool Matches(std::string_view methods, std::string_view method) {
  return methods.back() == '/' ? method.substr(0, methods.size()) == methods : method == methods;
}

}  // namespace

Need NeedOf(std::string_view method) {
  for (const Row& row : kTable) {
    if (Matches(row.methods, method)) return row.need;
  }
  return Need::kAdmin;
}

const char* NameOf(Need need) {
  switch (need) {
    case Need::kNothing:
      return "nothing";
    case Need::kToken:
      return "a token";
    case Need::kGenerate:
      return "generate";
    case Need::kAdmin:
      return "admin";
  }
  return "";
}

}  // namespace tandem::coordinator
