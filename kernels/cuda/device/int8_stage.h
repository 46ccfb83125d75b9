// How packs and inputs lie in shared memory for tiles that copy them there 256 columns at a time
// (int8_tile.h): kRows rows, each the head of its pack and its blocks' bodies, then the groups of
// kInputs inputs. Device code.
//
// An octet is eight groups of 32 columns, counted from the matrix's first column.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_INT8_STAGE_H_
#define TANDEM_KERNELS_CUDA_DEVICE_INT8_STAGE_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/blocks_of_32.h"
#include "kernels/cuda/device/group_range.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/device/packs.h"
#include "kernels/cuda/device/partial_sums.h"
#include "kernels/cuda/device/staged_bytes.h"

namespace tandem::kernels::cuda {

template <tensor::Type kType, uint32_t kRows, uint32_t kInputs>
struct Int8Stage {
  static constexpr PackLayout kPack = PackOf(kType);
  static constexpr uint32_t kUnit = kPackUnit;  // bytes of a copy
  static constexpr uint32_t kGroupUnits = sizeof(Int8Group) / kUnit;
  static constexpr uint32_t kHeadUnits = kPack.head_bytes / kUnit;
  static constexpr uint32_t kBodyUnits = kPack.body_bytes / kUnit;
  static constexpr uint32_t kBlocks = 256 / kPack.block_values;
  static constexpr uint32_t kRowUnits = kHeadUnits + kBlocks * kBodyUnits;
  // Odd: eight rows' words lie in different banks.
  static constexpr uint32_t kRowPitch = kRowUnits | 1;
  static constexpr uint32_t kInputsAt = kRows * kRowPitch;
  static constexpr uint32_t kUnits = kInputsAt + kPartialSums * kInputs * kGroupUnits;

  // Groups of 32 of a block and of a pack; octets of a pack.
  static constexpr uint32_t kBlockGroups = kPack.block_values / 32;
  static constexpr uint32_t kPackGroups = kPack.values() / 32;
  static constexpr uint32_t kPackOctets = kPackGroups / kPartialSums;
  static constexpr uint32_t kPackBytes = kPack.bytes();

  // Where in a row its pack's head begins, and how far unit i of the stage is from i units behind
  // that head, i from kHeadUnits on: the bodies of the pack's earlier octets lie between.
  static __device__ __forceinline__ uint32_t HeadAt(uint32_t octet) {
    return octet / kPackOctets * kPackBytes;
  }
  static __device__ __forceinline__ uint32_t BodyAt(uint32_t octet) {
    return HeadAt(octet) + octet % kPackOctets * (kBlocks * kBodyUnits * kUnit);
  }
  // Units of a row that an octet has, up to the last block with one of the groups.
  static __device__ __forceinline__ uint32_t UnitsIn(uint32_t octet, const GroupRange& groups) {
    if constexpr (kBlocks == 1) return kRowUnits;
    const uint32_t end = kPartialSums * octet + kPartialSums, last = groups.begin + groups.count;
    return kHeadUnits +
           (((end < last ? end : last) - 1) % kPartialSums / kBlockGroups + 1) * kBodyUnits;
  }
  // A group of a row of the stage. in_octet: group % 8.
  static __device__ __forceinline__ PackedGroup<StagedBytes> GroupAt(SharedArray<uint4> stage,
                                                                     uint32_t row, uint32_t group,
                                                                     uint32_t in_octet) {
    const StagedBytes head = {stage.As<uint32_t>(), row * (kRowPitch * kUnit)};
    const uint32_t body = kHeadUnits + in_octet / kBlockGroups * kBodyUnits;
    return {head, head + body * kUnit,
            kPackGroups == kPartialSums ? in_octet : group % kPackGroups};
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_INT8_STAGE_H_
