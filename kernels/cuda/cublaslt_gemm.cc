// DenseGemm by cuBLASLt.
//
// cuBLASLt is column-major: a row-major (r, c) matrix here is a column-major (c, r) matrix there.
// So c = a b^T becomes c' = b'^T a', with b first and transposed.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "kernels/backend.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cublas_check.h"
#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/gemm_plans.h"
#include "kernels/cuda/memory.h"

namespace tandem::kernels::cuda {
namespace {

// What NVIDIA recommends for cuBLAS: 32 MiB on Hopper and later, 4 MiB before.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr size_t kWorkspaceBytesBeforeHopper = size_t{4} << 20;
constexpr uint32_t kMostAlignment = 256;

template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    kDestroy(handle);
  }
};
template <typename Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;
using Library = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// By which an algorithm is chosen, besides m.
struct Shape {
  GemmParams::Type type;
  uint32_t n, k;
  uint32_t a_stride, b_stride, c_stride;
  uint32_t a_alignment, b_alignment, c_alignment;  // in bytes

  auto operator<=>(const Shape&) const = default;
};

// In a plan pass a null pointer is scratch, which is aligned.
uint32_t AlignmentOf(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  if (address == 0) return kMostAlignment;
  return static_cast<uint32_t>(std::min<uintptr_t>(address & -address, kMostAlignment));
}

Shape ShapeOf(const GemmParams& p) {
  return {p.type,
          p.n,
          p.k,
          p.a_stride,
          p.b_stride,
          p.c_stride,
          AlignmentOf(p.a),
          AlignmentOf(p.b),
          AlignmentOf(p.c)};
}

cudaDataType_t CudaTypeOf(GemmParams::Type type) {
  switch (type) {
    case GemmParams::Type::kF32:
      return CUDA_R_32F;
    case GemmParams::Type::kF16:
      return CUDA_R_16F;
    case GemmParams::Type::kBf16:
      return CUDA_R_16BF;
  }
  return CUDA_R_32F;
}

const char* NameOf(GemmParams::Type type) {
  return type == GemmParams::Type::kF32 ? "F32" : type == GemmParams::Type::kF16 ? "F16" : "BF16";
}

std::string Describe(const GemmParams& p) {
  return absl::StrCat(NameOf(p.type), " product of (", p.m, ", ", p.k, ") and (", p.n, ", ", p.k,
                      "), rows ", p.a_stride, ", ", p.b_stride, " and ", p.c_stride, " apart");
}

// Made for a bucket of numbers of rows; SetRows gives it those of a product.
struct Plan {
  Operation operation;
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm;
};

absl::StatusOr<Layout> MakeLayout(cudaDataType_t type, uint32_t rows, uint32_t cols,
                                  uint32_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  TANDEM_CUBLAS_RETURN_IF_ERROR(cublasLtMatrixLayoutCreate(&layout, type, cols, rows, stride));
  return Layout(layout);
}

// CUBLAS_COMPUTE_32F multiplies F32 inputs unrounded; TF32 would be another compute type.
absl::StatusOr<Operation> MakeOperation() {
  cublasLtMatmulDesc_t created = nullptr;
  TANDEM_CUBLAS_RETURN_IF_ERROR(cublasLtMatmulDescCreate(&created, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  Operation operation(created);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  TANDEM_CUBLAS_RETURN_IF_ERROR(cublasLtMatmulDescSetAttribute(created, CUBLASLT_MATMUL_DESC_TRANSA,
                                                               &transposed, sizeof(transposed)));
  return operation;
}

class CublasLtGemm : public DenseGemm {
 public:
  absl::Status Open() {
    int device = 0;
    cudaDeviceProp properties;
    TANDEM_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
    TANDEM_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, device));
    TANDEM_ASSIGN_OR_RETURN(
        workspace_,
        AllocateDevice(properties.major >= 9 ? kWorkspaceBytes : kWorkspaceBytesBeforeHopper));
    cublasLtHandle_t library = nullptr;
    TANDEM_CUBLAS_RETURN_IF_ERROR(cublasLtCreate(&library));
    library_.reset(library);
    return absl::OkStatus();
  }

  void Encode(Stream& stream, const GemmParams& params) override {
    if (params.m == 0 || params.n == 0 || !stream.error().empty()) return;
    absl::Status done = EncodeBy(Find(params), stream, params);
    // The check of a bucket's algorithm promises no more than that it may run.
    if (!done.ok() && BucketOf(params.m) != params.m) {
      done = EncodeBy(FindExact(params), stream, params);
    }
    if (!done.ok()) stream.NoteError(absl::StrCat(Describe(params), ": ", done.message()));
  }

  uint64_t workspace_bytes() const override { return workspace_.bytes(); }

 private:
  absl::Status EncodeBy(const absl::StatusOr<Plan*>& plan, Stream& stream,
                        const GemmParams& params) const {
    if (!plan.ok() || stream.planning()) return plan.status();
    return Enqueue(stream, params, **plan);
  }

  absl::StatusOr<Plan*> FindExact(const GemmParams& params) {
    return plans_.FindExact(ShapeOf(params), params.m,
                            [&](uint32_t m) { return MakePlan(params, m); });
  }
  absl::StatusOr<Plan*> Find(const GemmParams& params) {
    return plans_.Find(
        ShapeOf(params), params.m, [&](uint32_t m) { return MakePlan(params, m); },
        [&](Plan& plan, uint32_t m) { return Fits(plan, m); });
  }

  // Runs on the host only: the heuristic reads tables.
  absl::StatusOr<Plan> MakePlan(const GemmParams& params, uint32_t m) const {
    const cudaDataType_t type = CudaTypeOf(params.type);
    Plan plan;
    TANDEM_ASSIGN_OR_RETURN(plan.operation, MakeOperation());
    TANDEM_ASSIGN_OR_RETURN(plan.a, MakeLayout(type, m, params.k, params.a_stride));
    TANDEM_ASSIGN_OR_RETURN(plan.b, MakeLayout(type, params.n, params.k, params.b_stride));
    TANDEM_ASSIGN_OR_RETURN(plan.c, MakeLayout(CUDA_R_32F, m, params.n, params.c_stride));
    TANDEM_ASSIGN_OR_RETURN(const Preference preference, MakePreference(ShapeOf(params)));
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    TANDEM_CUBLAS_RETURN_IF_ERROR(cublasLtMatmulAlgoGetHeuristic(
        library_.get(), plan.operation.get(), plan.b.get(), plan.a.get(), plan.c.get(),
        plan.c.get(), preference.get(), 1, &found, &count));
    if (count == 0) return absl::UnimplementedError("cuBLASLt has no algorithm for it");
    TANDEM_CUBLAS_RETURN_IF_ERROR(found.state);
    plan.algorithm = found.algo;
    return plan;
  }

  absl::StatusOr<Preference> MakePreference(const Shape& shape) const {
    cublasLtMatmulPreference_t created = nullptr;
    TANDEM_CUBLAS_RETURN_IF_ERROR(cublasLtMatmulPreferenceCreate(&created));
    Preference preference(created);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return cublasLtMatmulPreferenceSetAttribute(created, attribute, &value, sizeof(value));
    };
    const uint64_t bytes = workspace_.bytes();
    TANDEM_CUBLAS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes));
    // In cuBLASLt's order: b is its A.
    TANDEM_CUBLAS_RETURN_IF_ERROR(
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.b_alignment));
    TANDEM_CUBLAS_RETURN_IF_ERROR(
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.a_alignment));
    TANDEM_CUBLAS_RETURN_IF_ERROR(
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.c_alignment));
    TANDEM_CUBLAS_RETURN_IF_ERROR(
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.c_alignment));
    return preference;
  }

  // Whether the algorithm can do with m rows what it was chosen to do with more. On the host too.
  bool Fits(Plan& plan, uint32_t m) const {
    cublasLtMatmulHeuristicResult_t found = {};
    return SetRows(plan, m).ok() &&
           cublasLtMatmulAlgoCheck(library_.get(), plan.operation.get(), plan.b.get(), plan.a.get(),
                                   plan.c.get(), plan.c.get(), &plan.algorithm,
                                   &found) == CUBLAS_STATUS_SUCCESS &&
           found.workspaceSize <= workspace_.bytes();
  }

  static absl::Status SetRows(Plan& plan, uint64_t m) {
    for (const cublasLtMatrixLayout_t layout : {plan.a.get(), plan.c.get()}) {
      TANDEM_CUBLAS_RETURN_IF_ERROR(
          cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &m, sizeof(m)));
    }
    return absl::OkStatus();
  }

  absl::Status Enqueue(Stream& stream, const GemmParams& p, Plan& plan) const {
    TANDEM_RETURN_IF_ERROR(SetRows(plan, p.m));
    const float one = 1.0f, zero = 0.0f;
    TANDEM_CUBLAS_RETURN_IF_ERROR(
        cublasLtMatmul(library_.get(), plan.operation.get(), &one, p.b, plan.b.get(), p.a,
                       plan.a.get(), &zero, p.c, plan.c.get(), p.c, plan.c.get(), &plan.algorithm,
                       workspace_.data(), workspace_.bytes(), stream.handle()));
    return absl::OkStatus();
  }

  Buffer workspace_;
  Library library_;
  BucketedPlans<Shape, Plan> plans_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DenseGemm>> MakeDenseGemm() {
  auto gemm = std::make_unique<CublasLtGemm>();
  TANDEM_RETURN_IF_ERROR(gemm->Open());
  return std::unique_ptr<DenseGemm>(std::move(gemm));
}

}  // namespace tandem::kernels::cuda
