#include "kernels/cpu/matmul/dispatch.h"

#include "kernels/cpu/matmul/families.h"

namespace tandem::kernels::cpu {

constinit const MatMulKernels kAvx2Kernels = {
    .name = "avx2",
    .lanes = 8,
    .floats = avx2::kFloat,
    .bf16 = avx2::kFloat.bf16,
    .blocks_32 = avx2::kBlocks32,
    .blocks_256 = avx2::kBlocks256,
    .codebook = avx2::kCodebook,
    .grid = avx2::kGrid,
    .few_bits = avx2::kFewBits,
};
// VNNI is for integers; plain weights cannot use it, here and below.
constinit const MatMulKernels kAvx2VnniKernels = {
    .name = "avx2-vnni",
    .lanes = 8,
    .floats = avx2::kFloat,
    .bf16 = avx2::kFloat.bf16,
    .blocks_32 = avx2_vnni::kBlocks32,
    .blocks_256 = avx2_vnni::kBlocks256,
    .codebook = avx2_vnni::kCodebook,
    .grid = avx2_vnni::kGrid,
    .few_bits = avx2_vnni::kFewBits,
};
constinit const MatMulKernels kAvx512Kernels = {
    .name = "avx512",
    .lanes = 16,
    .floats = avx512::kFloat,
    .bf16 = avx512::kFloat.bf16,
    .blocks_32 = avx512::kBlocks32,
    .blocks_256 = avx512::kBlocks256,
    .codebook = avx512::kCodebook,
    .grid = avx512::kGrid,
    .few_bits = avx512::kFewBits,
};
constinit const MatMulKernels kAvx512VnniKernels = {
    .name = "avx512-vnni",
    .lanes = 16,
    .floats = avx512::kFloat,
    .bf16 = avx512::kFloat.bf16,
    .blocks_32 = avx512_vnni::kBlocks32,
    .blocks_256 = avx512_vnni::kBlocks256,
    .codebook = avx512_vnni::kCodebook,
    .grid = avx512_vnni::kGrid,
    .few_bits = avx512_vnni::kFewBits,
};
constinit const MatMulKernels kAvx512Bf16Kernels = {
    .name = "avx512-bf16",
    .lanes = 16,
    .floats = avx512::kFloat,
    .bf16 = avx512_bf16::kBf16,
    .blocks_32 = avx512_vnni::kBlocks32,
    .blocks_256 = avx512_vnni::kBlocks256,
    .codebook = avx512_vnni::kCodebook,
    .grid = avx512_vnni::kGrid,
    .few_bits = avx512_vnni::kFewBits,
};

namespace {

const MatMulKernels& BestAvx512() {
  if (HasFastBf16()) return kAvx512Bf16Kernels;
  return HasVnni() ? kAvx512VnniKernels : kAvx512Kernels;
}

}  // namespace

const MatMulKernels& BestKernels(Isa isa) {
  if (isa == Isa::kAvx2) return kAvx2Kernels;
  if (isa == Isa::kAvx2Vnni) return kAvx2VnniKernels;
  static const MatMulKernels& best = BestAvx512();
  return best;
}

std::vector<const MatMulKernels*> RunnableKernels() {
  std::vector<const MatMulKernels*> all;
  if (MissingInstructions(Isa::kAvx2).empty()) all.push_back(&kAvx2Kernels);
  if (MissingInstructions(Isa::kAvx2Vnni).empty()) all.push_back(&kAvx2VnniKernels);
  if (MissingInstructions(Isa::kAvx512).empty()) {
    all.push_back(&kAvx512Kernels);
    if (HasVnni()) all.push_back(&kAvx512VnniKernels);
    if (HasBf16()) all.push_back(&kAvx512Bf16Kernels);
    std::erase(all, &BestAvx512());
    all.push_back(&BestAvx512());
  }
  return all;
}

PanelAhead BestPanelAhead() {
  constexpr PanelAhead kToL1 = {0, 10240};
  static const bool far = FetchesFarToL1();
  return far ? kToL1 : kToL2ThenL1;
}

const Kernel* FindKernel(const MatMulKernels& kernels, tensor::Type type) {
  switch (type) {
    case tensor::Type::kF32:
      return &kernels.floats.f32;
    case tensor::Type::kF16:
      return &kernels.floats.f16;
    case tensor::Type::kBF16:
      return &kernels.bf16;
    case tensor::Type::kQ8_0:
      return &kernels.blocks_32.q8_0;
    case tensor::Type::kQ4_0:
      return &kernels.blocks_32.q4_0;
    case tensor::Type::kQ5_0:
      return &kernels.blocks_32.q5_0;
    case tensor::Type::kQ4_K:
      return &kernels.blocks_256.q4_k;
    case tensor::Type::kIQ4_NL:
      return &kernels.codebook.iq4_nl;
    case tensor::Type::kIQ4_XS:
      return &kernels.codebook.iq4_xs;
    case tensor::Type::kMXFP4:
      return &kernels.codebook.mxfp4;
    case tensor::Type::kNVFP4:
      return &kernels.codebook.nvfp4;
    case tensor::Type::kQ2_K:
      return &kernels.blocks_256.q2_k;
    case tensor::Type::kQ3_K:
      return &kernels.blocks_256.q3_k;
    case tensor::Type::kQ4_1:
      return &kernels.blocks_32.q4_1;
    case tensor::Type::kQ5_1:
      return &kernels.blocks_32.q5_1;
    case tensor::Type::kQ5_K:
      return &kernels.blocks_256.q5_k;
    case tensor::Type::kQ6_K:
      return &kernels.blocks_256.q6_k;
    case tensor::Type::kIQ1_S:
      return &kernels.grid.iq1_s;
    case tensor::Type::kIQ1_M:
      return &kernels.grid.iq1_m;
    case tensor::Type::kIQ2_XXS:
      return &kernels.grid.iq2_xxs;
    case tensor::Type::kIQ2_XS:
      return &kernels.grid.iq2_xs;
    case tensor::Type::kIQ2_S:
      return &kernels.grid.iq2_s;
    case tensor::Type::kIQ3_XXS:
      return &kernels.grid.iq3_xxs;
    case tensor::Type::kIQ3_S:
      return &kernels.grid.iq3_s;
    case tensor::Type::kQ1_0:
      return &kernels.few_bits.q1_0;
    case tensor::Type::kQ2_0:
      return &kernels.few_bits.q2_0;
    case tensor::Type::kTQ1_0:
      return &kernels.few_bits.tq1_0;
    case tensor::Type::kTQ2_0:
      return &kernels.few_bits.tq2_0;
    default:
      return nullptr;
  }
}

}  // namespace tandem::kernels::cpu
