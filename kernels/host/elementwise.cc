// Ops with a single pass over memory that never dominate a step: LayerNorm, SumSquares, AddRows,
// CopyRows, SoftCap. Shared by all backends on the host: plain loops, sums in double.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/host/ops.h"

namespace tandem::kernels::host {
namespace {

// Source: Ba, Kiros and Hinton, "Layer normalization", 2016.
void NormRow(const LayerNormParams& p, const TaskContext& context) {
  const size_t begin = static_cast<size_t>(context.task) * p.dim;
  float* const residual = p.residual + begin;
  float* const out = p.out + begin;
  if (p.add != nullptr) {
    for (uint32_t i = 0; i < p.dim; ++i) residual[i] += p.add[begin + i];
  }
  double sum = 0;
  for (uint32_t i = 0; i < p.dim; ++i) sum += residual[i];
  const double mean = sum / p.dim;
  double squares = 0;
  for (uint32_t i = 0; i < p.dim; ++i) {
    const double off = residual[i] - mean;
    squares += off * off;
  }
  const double scale = 1.0 / std::sqrt(squares / p.dim + p.epsilon);
  for (uint32_t i = 0; i < p.dim; ++i) {
    const float bias = p.bias != nullptr ? p.bias[i] : 0.0f;
    out[i] = static_cast<float>((residual[i] - mean) * scale) * p.weight[i] + bias;
  }
}

void SumSquaresOfRow(const SumSquaresParams& p, const TaskContext& context) {
  const float* const x = p.x + size_t{context.task} * p.x_stride;
  double sum = 0;
  for (uint32_t i = 0; i < p.dim; ++i) sum += double{x[i]} * x[i];
  p.sums[context.task] = static_cast<float>(sum);
}

void AddRow(const AddRowsParams& p, const TaskContext& context) {
  const size_t begin = static_cast<size_t>(context.task) * p.dim;
  const float factor =
      p.gate != nullptr ? static_cast<float>(1.0 / (1.0 + std::exp(-double{p.gate[context.task]})))
                        : 1.0f;
  for (size_t i = begin; i < begin + p.dim; ++i) p.y[i] = (p.y[i] + factor * p.x[i]) * p.scale;
}

constexpr uint32_t kRowsPerCopy = 16;

void CopySomeRows(const CopyRowsParams& p, const TaskContext& context) {
  const size_t begin = size_t{context.task} * kRowsPerCopy;
  const size_t end = std::min<size_t>(p.rows, begin + kRowsPerCopy);
  for (size_t row = begin; row < end; ++row) {
    std::memcpy(p.y + row * p.y_stride, p.x + row * p.x_stride, p.dim * sizeof(float));
  }
}

constexpr size_t kValuesPerCap = 4096;

void CapValues(const SoftCapParams& p, const TaskContext& context) {
  const size_t begin = context.task * kValuesPerCap;
  const size_t end = std::min(p.count, begin + kValuesPerCap);
  for (size_t i = begin; i < end; ++i) p.x[i] = p.cap * std::tanh(p.x[i] / p.cap);
}

}  // namespace

void EncodeOp(OpList& list, const LayerNormParams& params) {
  list.Add("layer_norm", params.rows, &NormRow, params);
}

void EncodeOp(OpList& list, const SumSquaresParams& params) {
  list.Add("sum_squares", params.rows, &SumSquaresOfRow, params);
}

void EncodeOp(OpList& list, const AddRowsParams& params) {
  list.Add("add_rows", params.rows, &AddRow, params);
}

void EncodeOp(OpList& list, const CopyRowsParams& params) {
  list.Add("copy_rows", (params.rows + kRowsPerCopy - 1) / kRowsPerCopy, &CopySomeRows, params);
}

void EncodeOp(OpList& list, const SoftCapParams& params) {
  list.Add("soft_cap", static_cast<uint32_t>((params.count + kValuesPerCap - 1) / kValuesPerCap),
           &CapValues, params);
}

}  // namespace tandem::kernels::host
