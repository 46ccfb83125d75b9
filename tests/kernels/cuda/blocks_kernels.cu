#include "tests/kernels/cuda/blocks_kernels.h"

#include <cuda_runtime.h>

#include <cstring>

#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/pack_rows.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {
namespace {

struct Params {
  const std::byte* row;
  const ByteGroup* x;
  uint32_t cols;
  float* single;
  float* eights;
  float* dots;
};

// One thread for 8 columns.
template <tensor::Type kType>
__global__ void BlocksKernel(const Params p) {
  const uint32_t col = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (col >= p.cols) return;
  float eight[8];
  Dequantize8<kType>(p.row, col, eight);
  for (uint32_t i = 0; i < 8; ++i) {
    p.single[col + i] = ValueAt<kType>(p.row, col + i);
    p.eights[col + i] = eight[i];
  }
  if constexpr (!IsPlain(kType)) {
    if (col % 32 != 0) return;
    const ByteGroup& bytes = p.x[col / 32];
    Int8Group x = {{0, 0, 0, 0, 0, 0, 0, 0}, bytes.scale, 0, 0};
    for (int i = 0; i < 32; ++i) {
      x.q[i / 4] |= static_cast<int>(static_cast<uint32_t>(bytes.bytes[i] & 0xff) << (i % 4 * 8));
      (i < 16 ? x.sum_low : x.sum_high) += bytes.bytes[i];
    }
    p.dots[col / 32] = Dot32<kType>(p.row, col, x);
  }
}

// Memory of the device for one test.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) { error_ = cudaMalloc(&data_, bytes); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { cudaFree(data_); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  cudaError_t error() const { return error_; }

 private:
  void* data_ = nullptr;
  cudaError_t error_;
};

}  // namespace

BlockResults RunOnRow(tensor::Type type, const std::vector<std::byte>& file_row,
                      const std::vector<ByteGroup>& x) {
  const auto cols = static_cast<uint32_t>(32 * x.size());
  const RowPacker packer(type, cols);
  std::vector<std::byte> row(packer.row_bytes());
  packer.Write(file_row.data(), 0, row.data(), row.size());
  BlockResults results;
  results.single.resize(cols);
  results.eights.resize(cols);
  if (!IsPlain(type)) results.dots.resize(x.size());
  Stream stream;
  stream.Begin(/*planning=*/false);
  stream.Note(stream.Create(), "stream");
  const DeviceMemory row_memory(row.size()), x_memory(x.size() * sizeof(ByteGroup));
  const DeviceMemory single(cols * sizeof(float)), eights(cols * sizeof(float));
  const DeviceMemory dots(x.size() * sizeof(float));
  for (const DeviceMemory* memory : {&row_memory, &x_memory, &single, &eights, &dots}) {
    stream.Note(memory->error(), "memory");
  }
  stream.Copy(row_memory.as<void>(), row.data(), row.size(), cudaMemcpyHostToDevice);
  stream.Copy(x_memory.as<void>(), x.data(), x.size() * sizeof(ByteGroup), cudaMemcpyHostToDevice);
  const Params params = {row_memory.as<std::byte>(), x_memory.as<ByteGroup>(), cols,
                         single.as<float>(),         eights.as<float>(),       dots.as<float>()};
  DispatchType(type, [&](auto t) {
    stream.Launch("blocks", &BlocksKernel<decltype(t)::value>, Blocks(cols, 8 * 32), 32, 0, params);
  });
  const auto get = [&](std::vector<float>& to, const DeviceMemory& from) {
    stream.Copy(to.data(), from.as<void>(), to.size() * sizeof(float), cudaMemcpyDeviceToHost);
  };
  get(results.single, single);
  get(results.eights, eights);
  get(results.dots, dots);
  stream.Note(cudaStreamSynchronize(stream.handle()), "run");
  results.error = stream.error();
  return results;
}

}  // namespace tandem::kernels::cuda
