// The kernel of attention on tensor cores (tensor_core.h), its block shapes, and which of them a
// launch has. The .cu files instantiate it for pages of some type each.
//
// Floor: every K and V row visible to a sequence is read once per KV head and tile of query rows:
// in decode context * kv_heads * (K row + V row) bytes per sequence, each once for all its heads;
// in prefill 4 * rows * positions * (head_dim + value_dim) / 2 operations, causal ones halved.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_TENSOR_LAUNCH_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_TENSOR_LAUNCH_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention/tensor_core.h"
#include "kernels/cuda/device/launch_order.h"

namespace tandem::kernels::cuda {

template <typename C>
__global__ void __launch_bounds__(C::kThreads, C::kTile.blocks)
    TensorAttentionKernel(const AttentionArgs a) {
  FollowEarlierLaunches();
  SharedArena arena;
  const WorkList list(a, arena);
  const SharedArray<Assignment> current = arena.Take<Assignment>(1);
  TensorAttention<C> attention(a, current, arena);
  typename C::Tiles tiles(a, current, arena);
  AttendToShare(a, list, current, attention, tiles);
}

template <typename C>
void LaunchTensorAttention(Stream& stream, AttentionArgs& args) {
  const size_t shared = C::SharedBytesOf(args);
  if (!PlanAttention(stream, C::kTile, shared, args)) return;
  stream.LaunchEarly("attention", &TensorAttentionKernel<C>, args.shares, C::kThreads, shared,
                     args);
  EncodeAttentionMerge(stream, args);
}

// As many as leave a multiprocessor its blocks, and two at least.
template <typename Shape>
uint32_t StagesOf(const Stream& stream, AttentionArgs args) {
  for (args.stages = kMostStages; args.stages > 2; --args.stages) {
    if (BlocksThatFit(stream, Shape::SharedBytesOf(args)) >= Shape::kTile.blocks) break;
  }
  return args.stages;
}

// Launches the first block shape whose shared memory the GPU has, for sequences of a class.
template <typename Shape, typename... Smaller>
void LaunchFitting(Stream& stream, AttentionArgs& args, RowClass rows) {
  if (MostRows(args.p) <= rows.above) return;
  args.rows = rows;
  args.stages = StagesOf<Shape>(stream, args);
  const size_t bytes = Shape::SharedBytesOf(args);
  if (bytes <= stream.most_shared_bytes()) return LaunchTensorAttention<Shape>(stream, args);
  if constexpr (sizeof...(Smaller) > 0) {
    LaunchFitting<Smaller...>(stream, args, rows);
  } else {
    RefuseAttention(stream, args, bytes);
  }
}

// Selects the block shapes by the width of K and V: the largest, or a smaller one for GPUs with 99
// KiB of shared memory per block (sm_86, sm_89). Shapes for few and for some rows differ in their
// row warps alone: a token has the same bits whether it is decoded or verified with others.
template <typename Page>
void EncodeTensorAttention(Stream& stream, AttentionArgs& args) {
  const uint32_t values = args.p.pages.value_dim, keys = args.p.pages.head_dim;
  const uint32_t widest = values > keys ? values : keys;
  if (widest <= 128) {
    LaunchFitting<TensorConfig<Page, 1, 4, 64, 4>>(stream, args, kFewRows);
    LaunchFitting<TensorConfig<Page, 2, 4, 64, 4>>(stream, args, kSomeRows);
    LaunchFitting<TensorConfig<Page, kPromptWarps, 1, 64, 16>, TensorConfig<Page, 4, 1, 64, 16>>(
        stream, args, kManyRows);
  } else if (widest <= 256) {
    using Small = TensorConfig<Page, 2, 4, 32, 8>;
    LaunchFitting<TensorConfig<Page, 1, 4, 64, 8>, TensorConfig<Page, 1, 4, 32, 8>>(stream, args,
                                                                                    kFewRows);
    LaunchFitting<TensorConfig<Page, 2, 4, 64, 8>, Small>(stream, args, kSomeRows);
    LaunchFitting<TensorConfig<Page, 4, 2, 32, 16>, Small>(stream, args, kManyRows);
  } else {
    using Few = TensorConfig<Page, 1, 4, 32, 16>;
    LaunchFitting<Few>(stream, args, kFewRows);
    LaunchFitting<TensorConfig<Page, 2, 4, 32, 16>, Few>(stream, args, kSomeRows);
    LaunchFitting<TensorConfig<Page, 4, 4, 32, 16>, Few>(stream, args, kManyRows);
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_TENSOR_LAUNCH_H_
