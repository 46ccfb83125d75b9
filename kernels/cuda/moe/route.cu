// Source: DeepSeek-V3, arXiv:2412.19437, section 2.1.2, for groups; kernels/host/route.cc has the
// same steps in scalar code.
// Floor: reads the logits and writes ids and weights once: 4 bytes per expert and 8 per choice. In
// decode this is negligible; latency is the chain of top_k choices, each of two warp-wide
// instructions and a rescan of the chosen lane's experts.
//
// One block per token. Each warp evaluates groups; the first warp chooses. Scores are computed in
// double, as on the host, so that the same experts are chosen.
#include <cfloat>

#include "common/base/check.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kMaxWarps = 8;

// Floats as integers in the same order: taken is 0, then NaN, then numbers in ascending order.
constexpr uint32_t kTaken = 0;

__device__ uint32_t KeyOf(float value) {
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 1;
  if (bits == 0xff800000u) return kTaken;  // -inf, a possible bias
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

__device__ float ValueOf(uint32_t key) {
  if (key == kTaken) return __uint_as_float(0xff800000u);
  if (key == 1) return __uint_as_float(0x7fc00000u);
  return __uint_as_float(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}

// Extracts a warp's keys from the largest down: lane l holds those at l, l + 32, ... and caches its
// own largest.
class WarpChooser {
 public:
  __device__ WarpChooser(SharedArray<uint32_t> keys, uint32_t count)
      : keys_(keys), count_(count), lane_(threadIdx.x % kWarp) {
    Look();
  }

  // Takes the largest remaining key, on ties the lowest index; returns its index.
  __device__ uint32_t Take(uint32_t& key) {
    key = __reduce_max_sync(kAllLanes, key_);
    const uint32_t index = __reduce_min_sync(kAllLanes, key_ == key ? index_ : count_);
    if (index % kWarp == lane_) {
      keys_[index] = kTaken;
      Look();
    }
    return index;
  }

 private:
  __device__ void Look() {
    key_ = kTaken;
    index_ = lane_ < count_ ? lane_ : count_;
    for (uint32_t i = lane_; i < count_; i += kWarp) {
      const uint32_t key = keys_[i];
      if (key > key_) {
        key_ = key;
        index_ = i;
      }
    }
  }

  const SharedArray<uint32_t> keys_;
  const uint32_t count_;
  const uint32_t lane_;
  uint32_t key_;
  uint32_t index_;
};

// Scores of one token's experts, their selection keys, and a scratch copy.
struct Experts {
  SharedArray<float> scores;
  SharedArray<uint32_t> keys;
  SharedArray<uint32_t> spare;  // with groups only
};

__device__ void Softmax(const RouteParams& p, const float* logits, SharedArray<double> terms,
                        SharedArray<double> room, SharedArray<float> scores) {
  double largest = -INFINITY;
  for (uint32_t e = threadIdx.x; e < p.experts; e += blockDim.x) {
    const double logit = logits[e];
    largest = logit > largest ? logit : largest;
  }
  largest = BlockReduce(largest, MaxOp(), room);
  double sum = 0;
  for (uint32_t e = threadIdx.x; e < p.experts; e += blockDim.x) {
    const double term = exp(double{logits[e]} - largest);
    terms[e] = term;
    sum += term;
  }
  sum = BlockSum(sum, room);
  for (uint32_t e = threadIdx.x; e < p.experts; e += blockDim.x) {
    scores[e] = static_cast<float>(terms[e] / sum);
  }
}

// Removes the experts of groups that are not among the best. All threads.
__device__ void DropGroups(const RouteParams& p, const Experts& experts,
                           SharedArray<uint32_t> group_keys, SharedArray<uint32_t> kept) {
  const uint32_t size = p.experts / p.groups;
  const uint32_t lane = threadIdx.x % kWarp;
  for (uint32_t g = threadIdx.x / kWarp; g < p.groups; g += blockDim.x / kWarp) {
    WarpChooser members(experts.spare + g * size, size);
    float sum = 0;
    for (uint32_t i = 0; i < p.group_top; ++i) {
      uint32_t key;
      members.Take(key);
      sum += ValueOf(key);
    }
    if (lane == 0) {
      group_keys[g] = KeyOf(sum);
      kept[g] = 0;
    }
  }
  __syncthreads();
  if (threadIdx.x < kWarp) {
    WarpChooser groups(group_keys, p.groups);
    for (uint32_t i = 0; i < p.groups_kept; ++i) {
      uint32_t key;
      const uint32_t g = groups.Take(key);
      if (lane == 0) kept[g] = 1;
    }
  }
  __syncthreads();
  for (uint32_t e = threadIdx.x; e < p.experts; e += blockDim.x) {
    if (kept[e / size] == 0) experts.keys[e] = kTaken;
  }
  __syncthreads();
}

// One warp: the choices, their weights, and the normalisation of their sum.
__device__ void Choose(const RouteParams& p, const Experts& experts) {
  const size_t begin = static_cast<size_t>(blockIdx.x) * p.top_k;
  WarpChooser chooser(experts.keys, p.experts);
  float sum = 0;
  for (uint32_t k = 0; k < p.top_k; ++k) {
    uint32_t key;
    const uint32_t expert = chooser.Take(key);
    const float score = experts.scores[expert];
    sum += score;
    if (k % kWarp == threadIdx.x) {
      p.ids[begin + k] = static_cast<int32_t>(expert);
      p.weights[begin + k] = score;
    }
  }
  const float divisor = p.normalize ? sum : 1.0f;
  const float factor = divisor == 0 ? 0.0f : p.scale / divisor;
  for (uint32_t k = threadIdx.x; k < p.top_k; k += kWarp) {
    // The lane that wrote them.
    float weight = p.weights[begin + k] * factor;
    if (p.expert_scale != nullptr) weight *= p.expert_scale[p.ids[begin + k]];
    p.weights[begin + k] = weight;
  }
}

// The choices of a row that is padding.
__device__ void ChooseNone(const RouteParams& p) {
  const size_t begin = static_cast<size_t>(blockIdx.x) * p.top_k;
  for (uint32_t k = threadIdx.x; k < p.top_k; k += blockDim.x) {
    p.ids[begin + k] = kNoExpert;
    p.weights[begin + k] = 0;
  }
}

__global__ void __launch_bounds__(kMaxWarps* kWarp) RouteKernel(const RouteParams p) {
  FollowEarlierLaunches();
  if (p.lengths != nullptr && p.lengths[blockIdx.x] == 0) return ChooseNone(p);  // the whole block
  SharedArena arena;
  const bool groups = p.groups > 1;
  const SharedArray<double> room = arena.Take<double>(kBlockReduceRoom);
  const SharedArray<double> terms = arena.Take<double>(p.experts);
  const Experts experts = {arena.Take<float>(p.experts), arena.Take<uint32_t>(p.experts),
                           arena.Take<uint32_t>(groups ? p.experts : 0)};
  const SharedArray<uint32_t> group_keys = arena.Take<uint32_t>(groups ? p.groups : 0);
  const SharedArray<uint32_t> kept = arena.Take<uint32_t>(groups ? p.groups : 0);

  const float* const logits = p.logits + static_cast<size_t>(blockIdx.x) * p.experts;
  if (p.sigmoid) {
    for (uint32_t e = threadIdx.x; e < p.experts; e += blockDim.x) {
      experts.scores[e] = static_cast<float>(1.0 / (1.0 + exp(-double{logits[e]})));
    }
  } else {
    Softmax(p, logits, terms, room, experts.scores);
  }
  const bool by_logit = p.sigmoid && p.selection_bias == nullptr && !groups;
  for (uint32_t e = threadIdx.x; e < p.experts; e += blockDim.x) {
    const float bias = p.selection_bias != nullptr ? p.selection_bias[e] : 0.0f;
    // An expert with a logit of -inf can be taken.
    const float logit = logits[e] < -FLT_MAX ? -FLT_MAX : logits[e];
    const uint32_t key = KeyOf((by_logit ? logit : experts.scores[e]) + bias);
    experts.keys[e] = key;
    if (groups) experts.spare[e] = key;
  }
  __syncthreads();
  if (groups) DropGroups(p, experts, group_keys, kept);
  if (threadIdx.x < kWarp) Choose(p, experts);
}

}  // namespace

void EncodeOp(Stream& stream, const RouteParams& params) {
  TANDEM_CHECK(params.top_k <= params.experts && params.groups <= kMaxExpertGroups);
  const uint32_t warps = params.groups < kMaxWarps ? params.groups : kMaxWarps;
  const bool groups = params.groups > 1;
  const size_t shared = SharedBytes<double>(kBlockReduceRoom) +
                        SharedBytes<double>(params.experts) + SharedBytes<float>(params.experts) +
                        SharedBytes<uint32_t>(params.experts) +
                        SharedBytes<uint32_t>(groups ? params.experts : 0) +
                        2 * SharedBytes<uint32_t>(groups ? params.groups : 0);
  stream.LaunchEarly("route", &RouteKernel, params.tokens, warps * kWarp, shared, params);
}

}  // namespace tandem::kernels::cuda
