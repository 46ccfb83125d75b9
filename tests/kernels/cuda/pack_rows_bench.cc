// RowPacker on one thread, beside a copy of the same bytes: what loading a weight costs the host.
// Rows come from memory and go to a buffer of 16 MiB, as in WeightUpload.
//
//   bazel run //tests/kernels/cuda:pack_rows_bench
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/tensor/type.h"
#include "kernels/cuda/pack_rows.h"

namespace tandem::kernels::cuda {
namespace {

using tensor::Type;

constexpr uint32_t kCols = 4096;
constexpr size_t kFileBytes = size_t{256} << 20;
constexpr size_t kStageBytes = size_t{16} << 20;

// Calls write(row, to) for rows of kFileBytes in turn, `bytes` each; it returns how much it wrote.
template <typename Write>
void OverRows(benchmark::State& state, size_t bytes, Write write) {
  const std::vector<std::byte> file(kFileBytes, std::byte{7});
  std::vector<std::byte> stage(kStageBytes, std::byte{7});
  size_t row = 0, filled = 0;
  for (auto _ : state) {
    if (filled + 2 * bytes > stage.size()) filled = 0;
    filled += write(&file[row * bytes], &stage[filled]);
    row = (row + 1) % (file.size() / bytes);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

void Pack(benchmark::State& state, Type type) {
  const RowPacker packer(type, kCols);
  OverRows(state, tensor::RowBytes(type, kCols), [&](const std::byte* row, std::byte* to) {
    return packer.Write(row, 0, to, packer.row_bytes());
  });
}

void Copy(benchmark::State& state) {
  constexpr size_t kBytes = kCols * 34 / 32;
  OverRows(state, kBytes, [](const std::byte* row, std::byte* to) {
    std::memcpy(to, row, kBytes);
    return kBytes;
  });
}
BENCHMARK(Copy);

const bool registered = [] {
  for (const Type type :
       {Type::kQ4_0,   Type::kQ4_1,    Type::kQ5_0,   Type::kQ5_1,  Type::kQ8_0,
        Type::kQ2_K,   Type::kQ3_K,    Type::kQ4_K,   Type::kQ5_K,  Type::kQ6_K,
        Type::kIQ4_NL, Type::kIQ4_XS,  Type::kMXFP4,  Type::kNVFP4, Type::kIQ1_S,
        Type::kIQ1_M,  Type::kIQ2_XXS, Type::kIQ2_XS, Type::kIQ2_S, Type::kIQ3_XXS,
        Type::kIQ3_S,  Type::kQ1_0,    Type::kQ2_0,   Type::kTQ1_0, Type::kTQ2_0}) {
    benchmark::RegisterBenchmark(("Pack/" + std::string(tensor::Name(type))).c_str(), &Pack, type);
  }
  return true;
}();

}  // namespace
}  // namespace tandem::kernels::cuda

BENCHMARK_MAIN();
