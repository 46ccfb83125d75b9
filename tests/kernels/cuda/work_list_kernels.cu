#include "tests/kernels/cuda/work_list_kernels.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/cuda/attention/attend.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;
// As the tensor-core kernel for heads of 128 takes: two blocks of a multiprocessor.
constexpr size_t kBlockBytes = 80 * 1024;

struct Params {
  AttentionArgs args;
  uint32_t* tiles_of_block;
  uint32_t* given;
  uint32_t max_tiles;
};

// In place of K and V: goes through the tiles of a run.
class CountedTiles {
 public:
  __device__ explicit CountedTiles(SharedArray<Assignment> current) : current_(current) {}
  __device__ void StartLoads() {
    const Assignment now = current_[0];
    next_ = now.run.begin;
    end_ = now.run.end;
  }
  __device__ bool WaitForTile() const { return next_ < end_; }
  __device__ void ReleaseTile() { ++next_; }
  __device__ uint32_t tile() const { return next_; }
  __device__ uint32_t k() const { return next_; }
  __device__ uint32_t v() const { return 0; }
  __device__ int32_t position() const { return 0; }

 private:
  const SharedArray<Assignment> current_;
  uint32_t next_ = 0;
  uint32_t end_ = 0;
};

// In place of attention: thread 0 counts tiles.
class Counting {
 public:
  __device__ Counting(const Params& p, SharedArray<Assignment> current)
      : p_(p), current_(current) {}
  __device__ void Begin() const {}
  __device__ void Clear() const {}
  __device__ void AddTile(uint32_t tile, uint32_t, int32_t) const {
    if (threadIdx.x != 0) return;
    const Assignment now = current_[0];
    ++p_.tiles_of_block[blockIdx.x];
    const uint32_t seq = SequenceOfTile(p_.args, now.item.row_tile);
    atomicAdd(&p_.given[(seq * p_.args.p.pages.kv_heads + now.item.head) * p_.max_tiles + tile],
              1u);
  }
  __device__ void SumWeights() const {}
  __device__ void Merge(uint32_t) const {}
  __device__ void Store(uint32_t) const {}
  __device__ void WriteOutput() const {}

 private:
  const Params& p_;
  const SharedArray<Assignment> current_;
};

__global__ void ShareOutKernel(const Params p) {
  SharedArena arena;
  const WorkList list(p.args, arena);
  const SharedArray<Assignment> current = arena.Take<Assignment>(1);
  Counting attention(p, current);
  CountedTiles tiles(current);
  AttendToShare(p.args, list, current, attention, tiles);
}

// Device memory for one test, with these values.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(Stream& stream, const std::vector<T>& values) {
    stream.Note(cudaMalloc(&data_, values.size() * sizeof(T)), "memory");
    stream.Copy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
    stream.Note(cudaStreamSynchronize(stream.handle()), "copy");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  T* get() const { return static_cast<T*>(data_); }

 private:
  void* data_ = nullptr;
};

template <typename T>
std::vector<T> Read(Stream& stream, const DeviceArray<T>& array, size_t count) {
  std::vector<T> values(count);
  stream.Copy(values.data(), array.get(), count * sizeof(T), cudaMemcpyDeviceToHost);
  stream.Note(cudaStreamSynchronize(stream.handle()), "run");
  return values;
}

}  // namespace

WorkShares ShareOut(const WorkListCase& c) {
  Stream stream;
  stream.Begin(/*planning=*/true);
  stream.Note(stream.Create(), "stream");
  const auto seqs = static_cast<uint32_t>(c.query_lens.size());
  std::vector<int32_t> offsets = {0};
  for (const int32_t length : c.query_lens) offsets.push_back(offsets.back() + length);
  AttentionArgs args{};
  AttentionParams& p = args.p;
  p.tokens = static_cast<uint32_t>(offsets.back());
  p.num_seqs = seqs;
  p.pages.kv_heads = c.kv_heads();
  p.pages.value_dim = 128;
  p.heads = c.heads;
  p.first_head = c.first_head;
  p.heads_per_kv = c.heads_per_kv;
  p.first_kv_head = c.first_kv_head();
  p.window = c.window;
  p.max_query_len =
      static_cast<uint32_t>(*std::max_element(c.query_lens.begin(), c.query_lens.end()));
  p.max_context_len =
      static_cast<uint32_t>(*std::max_element(c.context_lens.begin(), c.context_lens.end()));
  args.rows = {c.rows_above, c.rows_upto};
  WorkShares shares;
  if (!PlanAttention(stream, {c.tile_rows, c.tile_positions, c.piece_positions}, kBlockBytes, args))
    shares.error = "no sequence of the class";
  shares.scratch_bytes = static_cast<uint32_t>(stream.wanted_scratch());

  stream.Begin(/*planning=*/false);
  const DeviceArray query_offsets(stream, offsets), contexts(stream, c.context_lens);
  const DeviceArray table_rows(stream, std::vector<int32_t>(seqs, 0));
  p.query_offsets = query_offsets.get();
  p.context_lens = contexts.get();
  p.table_rows = table_rows.get();
  shares.max_tiles = Blocks(p.max_context_len, c.tile_positions);
  const DeviceArray tiles(stream, std::vector<uint32_t>(args.shares, 0));
  const size_t units = size_t{seqs} * c.kv_heads() * shares.max_tiles;
  const DeviceArray given(stream, std::vector<uint32_t>(units, 0));
  stream.Launch("share out", &ShareOutKernel, args.shares, kThreads,
                WorkList::kSharedBytes + SharedBytes<Assignment>(1),
                Params{args, tiles.get(), given.get(), shares.max_tiles});
  shares.tiles_of_block = Read(stream, tiles, args.shares);
  shares.given = Read(stream, given, units);
  if (shares.error.empty()) shares.error = stream.error();
  return shares;
}

}  // namespace tandem::kernels::cuda
