// Problems for MatMul's tests: random matrices of every type, one call as the backend would run it,
// and what is expected of it.
#ifndef TANDEM_TESTS_KERNELS_MATMUL_PROBLEM_H_
#define TANDEM_TESTS_KERNELS_MATMUL_PROBLEM_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"
#include "kernels/host/panels.h"
#include "kernels/host/window.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/matmul_emulation.h"

namespace tandem::kernels::cpu {

using tensor::Type;

// All that can be computed with.
inline std::vector<Type> Types() {
  std::vector<Type> types;
  for (uint32_t number = 0; number < 64; ++number) {
    const auto traits = tensor::FindTypeTraits(number);
    if (traits.has_value() && traits->supported) types.push_back(traits->type);
  }
  return types;
}

inline bool Quantised(Type type) { return tensor::Traits(type).block_values > 1; }

// Whether kernels of the instruction set of that name round activations to BF16 for such weights.
inline bool RoundsToBf16(const std::string& isa, Type type) {
  return isa == Name(Isa::kAvx512) &&
         FindKernel(BestKernels(Isa::kAvx512), type)->activations == Activations::kBf16Pairs;
}
constexpr double kBf16Rounding = 0x1.01p-8;  // of one value, relative

// --- weights ---

// A matrix whose rows end exactly where its memory does, so that ASan sees any byte too many.
struct Matrix {
  Type type;
  uint32_t rows;
  uint32_t cols;
  uint64_t stride;
  std::unique_ptr<std::byte[]> data;

  const std::byte* row(uint32_t r) const { return data.get() + r * stride; }
  Weight weight() const { return {type, data.get(), rows, cols, stride, 0, cols}; }
};

// Copies of weights in panels; each ends exactly where its memory does.
class PanelCopies {
 public:
  Weight Add(const Weight& rows, uint32_t lanes) {
    Weight panels = rows;
    panels.panel_rows = lanes;
    panels.row_stride_bytes = host::PanelRowBytes(rows.type, host::WindowOf(rows).cols());
    const uint32_t all_rows = (rows.rows + lanes - 1) / lanes * lanes;
    const size_t bytes = all_rows * panels.row_stride_bytes;
    copies_.push_back(std::make_unique<std::byte[]>(bytes));
    for (uint32_t row = 0; row < rows.rows; row += lanes) {
      host::PackPanel(rows, row, lanes, copies_.back().get() + row * panels.row_stride_bytes);
    }
    panels.data = copies_.back().get();
    return panels;
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> copies_;
};

inline uint16_t RandomHalf(std::mt19937& random) {
  // Magnitudes from subnormal halves to about 1, both signs.
  const int exponent = std::uniform_int_distribution(-22, 0)(random);
  const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
  return tensor::FloatToHalf(sign * std::ldexp(1.0f + (random() % 1024) / 1024.0f, exponent));
}

// Where a block of `type` holds halves: scales, and what is added or subtracted.
inline std::vector<size_t> HalvesOf(Type type) {
  switch (type) {
    case Type::kQ6_K:
      return {offsetof(tensor::BlockQ6_K, d)};
    case Type::kQ3_K:
      return {offsetof(tensor::BlockQ3_K, d)};
    case Type::kTQ1_0:
      return {offsetof(tensor::BlockTQ1_0, d)};
    case Type::kTQ2_0:
      return {offsetof(tensor::BlockTQ2_0, d)};
    case Type::kQ2_K:
      return {offsetof(tensor::BlockQ2_K, d), offsetof(tensor::BlockQ2_K, dmin)};
    case Type::kQ4_1:
    case Type::kQ5_1:
    case Type::kQ4_K:
    case Type::kQ5_K:
      return {0, 2};
    default:
      return {0};
  }
}

// Writes the half at `at` of a block, which in IQ1_M lies in pieces.
inline void PutHalf(Type type, size_t at, uint16_t half, std::byte* block) {
  if (type != Type::kIQ1_M) {
    std::memcpy(block + at, &half, sizeof(half));
    return;
  }
  auto* const scales = reinterpret_cast<tensor::BlockIQ1_M*>(block)->scales;
  for (int i = 0; i < 4; ++i) {
    scales[i] = static_cast<uint16_t>((scales[i] & 0xfff) | (half >> (4 * i) & 15) << 12);
  }
}

inline void FillBlock(std::mt19937& random, Type type, std::byte* block, uint32_t bytes) {
  std::normal_distribution<float> normal;
  if (type == Type::kF32) {
    const float value = normal(random);
    std::memcpy(block, &value, sizeof(value));
    return;
  }
  const auto put_half = [&](size_t at, uint16_t half) { PutHalf(type, at, half, block); };
  if (type == Type::kF16) return put_half(0, tensor::FloatToHalf(normal(random)));
  if (type == Type::kBF16) return put_half(0, tensor::FloatToBf16(normal(random)));
  for (uint32_t i = 0; i < bytes; ++i) block[i] = static_cast<std::byte>(random());
  // Exponents between 2^-50 and 2^0; now and then one that is too small for a normal float.
  if (type == Type::kMXFP4) {
    block[0] = static_cast<std::byte>(random() % 16 == 0 ? random() % 3 : 78 + random() % 50);
    return;
  }
  if (type == Type::kNVFP4) return;  // every byte is a scale
  for (const size_t at : HalvesOf(type)) put_half(at, RandomHalf(random));
}

inline Matrix RandomMatrix(uint32_t seed, Type type, uint32_t rows, uint32_t cols,
                           uint64_t padding = 0) {
  std::mt19937 random(seed + FreshSeed());
  const tensor::TypeTraits& traits = tensor::Traits(type);
  const uint64_t row_bytes = tensor::RowBytes(type, cols);
  Matrix m{type, rows, cols, row_bytes + padding, nullptr};
  m.data = std::make_unique<std::byte[]>((rows - 1) * m.stride + row_bytes);
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t b = 0; b < cols / traits.block_values; ++b) {
      FillBlock(random, type, m.data.get() + r * m.stride + b * traits.block_bytes,
                traits.block_bytes);
    }
  }
  return m;
}

inline std::vector<float> RandomFloats(uint32_t seed, size_t count, float outliers = 0.02f) {
  std::mt19937 random(seed + FreshSeed());
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random) * (uniform(random) < outliers ? 50.0f : 1.0f);
  return values;
}

// --- running ---

// Runs what is encoded in one thread, with the scratch of `threads` in turn.
inline void RunList(const host::OpList& list) {
  const host::ScratchSize size = list.scratch();
  std::vector<std::byte> memory(size.shared + list.threads() * size.per_thread + 64,
                                std::byte{0xa5});
  void* aligned = memory.data();
  size_t space = memory.size();
  auto* base = static_cast<std::byte*>(std::align(64, memory.size() - 64, aligned, space));
  for (const host::OpList::Entry& entry : list.entries()) {
    for (uint32_t i = 0; i < entry.num_tasks; ++i) {
      const uint32_t task = i % 2 == 0 ? i / 2 : entry.num_tasks - 1 - i / 2;  // order is free
      const uint32_t thread = i % list.threads();
      entry.run(list.params(entry),
                {task, thread, base, base + size.shared + thread * size.per_thread});
    }
  }
}

inline void RunMatMul(const MatMulKernels& kernels, uint32_t threads, const MatMulParams& params) {
  host::OpList list(threads);
  list.Clear(EncodeMode::kPlan);
  EncodeMatMulWith(list, params, kernels);
  const host::ScratchSize planned = list.scratch();
  EXPECT_TRUE(list.entries().empty());
  list.Clear(EncodeMode::kRun);
  EncodeMatMulWith(list, params, kernels);
  EXPECT_EQ(planned.shared, list.scratch().shared);
  EXPECT_EQ(planned.per_thread, list.scratch().per_thread);
  RunList(list);
}

inline MatMulParams OneProjection(const Weight& weight, const float* x, uint32_t tokens,
                                  uint32_t x_stride, const float* bias, float* y,
                                  uint32_t y_stride) {
  MatMulParams params = {x, tokens, x_stride, 1, {}};
  params.projections[0] = {weight, bias, y, y_stride};
  return params;
}

// Dense y (tokens, rows).
inline std::vector<float> MultiplyOnce(const MatMulKernels& kernels, const Weight& weight,
                                       const std::vector<float>& x, uint32_t tokens,
                                       uint32_t threads = 1) {
  std::vector<float> y(size_t{tokens} * weight.rows, NAN);
  RunMatMul(
      kernels, threads,
      OneProjection(weight, x.data(), tokens, weight.col_count, nullptr, y.data(), weight.rows));
  return y;
}

// --- the truth ---

// One element of y of a plain weight.
inline float EmulatePlain(Activations form, const float* row, const float* x, uint32_t cols) {
  return form == Activations::kBf16Pairs ? EmulateBf16(row, x, cols) : EmulateFloat(row, x, cols);
}

// y (tokens, rows) by the emulation of a kernel that reads activations in `form`; x (tokens, cols).
inline std::vector<float> Emulate(const Matrix& m, const std::vector<float>& x, uint32_t tokens,
                                  Activations form) {
  std::vector<std::vector<ByteBlock>> bytes(tokens);
  for (uint32_t t = 0; t < tokens && Quantised(m.type); ++t) {
    bytes[t] = ToBytes(x.data() + size_t{t} * m.cols, m.cols);
  }
  std::vector<float> y(size_t{tokens} * m.rows);
  std::vector<float> values(m.cols);
  for (uint32_t r = 0; r < m.rows; ++r) {
    const std::vector<Group> groups = GroupsOf(m.type, m.row(r), m.cols);
    tensor::Dequantize(m.type, m.row(r), values.data(), m.cols);
    for (uint32_t t = 0; t < tokens; ++t) {
      y[size_t{t} * m.rows + r] =
          Quantised(m.type)
              ? EmulateQuantised(groups, bytes[t])
              : EmulatePlain(form, values.data(), x.data() + size_t{t} * m.cols, m.cols);
    }
  }
  return y;
}

// How far each activation may be from what is multiplied, by token and column; zero where they stay
// floats.
inline std::vector<double> HalfSteps(Activations form, const std::vector<float>& x, uint32_t cols) {
  std::vector<double> steps(x.size());
  if (form == Activations::kFloats) return steps;
  if (form == Activations::kBf16Pairs) {
    for (size_t i = 0; i < x.size(); ++i) steps[i] = std::fabs(x[i]) * kBf16Rounding;
    return steps;
  }
  for (size_t block = 0; block < x.size(); block += 32) {
    float max = 0;
    for (size_t i = block; i < block + 32; ++i) max = std::fmax(max, std::fabs(x[i]));
    for (size_t i = block; i < block + 32; ++i) steps[i] = max / 127.0 * 0.5001;
  }
  EXPECT_EQ(cols % 32, 0);
  return steps;
}

// |y - exact| is at most what rounding activations to `form` and float sums can cause.
inline void ExpectNearExact(const Matrix& m, const std::vector<float>& x, uint32_t tokens,
                            const std::vector<float>& y, Activations form) {
  const std::vector<double> half_steps = HalfSteps(form, x, m.cols);
  std::vector<float> w(m.cols);
  for (uint32_t r = 0; r < m.rows; ++r) {
    tensor::Dequantize(m.type, m.row(r), w.data(), m.cols);
    for (uint32_t t = 0; t < tokens; ++t) {
      const size_t at = size_t{t} * m.cols;
      double exact = 0, magnitude = 0, rounding = 0;
      for (uint32_t c = 0; c < m.cols; ++c) {
        const double product = double{w[c]} * x[at + c];
        exact += product;
        magnitude += std::fabs(product);
        rounding += std::fabs(w[c]) * half_steps[at + c];
      }
      // Scales and minimums cancel, so magnitudes may exceed those of the values.
      const double slack = (magnitude + rounding) * 1e-4 + 1e-30;
      ASSERT_NEAR(y[size_t{t} * m.rows + r], exact, rounding + slack)
          << "row " << r << " token " << t;
    }
  }
}

inline void ExpectSameBits(const float* a, const float* b, size_t count, const std::string& what) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t left, right;
    std::memcpy(&left, &a[i], 4);
    std::memcpy(&right, &b[i], 4);
    ASSERT_EQ(left, right) << what << ", element " << i << ": " << a[i] << " and " << b[i];
  }
}

inline void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b,
                           const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  ExpectSameBits(a.data(), b.data(), a.size(), what);
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_TESTS_KERNELS_MATMUL_PROBLEM_H_
