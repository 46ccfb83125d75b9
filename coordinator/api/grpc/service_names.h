// Names of the public services, as in their .proto files.
#ifndef TANDEM_COORDINATOR_API_GRPC_SERVICE_NAMES_H_
#define TANDEM_COORDINATOR_API_GRPC_SERVICE_NAMES_H_

namespace tandem::coordinator {

inline constexpr const char* kGenerationService = "tandem.v1.Generation";
inline constexpr const char* kTracingService = "tandem.v1.Tracing";
inline constexpr const char* kVllmEngineService = "vllm.grpc.engine.VllmEngine";
// With those that describe the server itself.
inline constexpr const char* kPublicServices[] = {"grpc.health.v1.Health",
                                                  "grpc.reflection.v1.ServerReflection",
                                                  "grpc.reflection.v1alpha.ServerReflection",
                                                  kGenerationService,
                                                  kTracingService,
                                                  kVllmEngineService};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_SERVICE_NAMES_H_
