// The memory that the ranks of an emulated NCCL communicator share: who is there, how far each has
// come, and what each has sent. An anonymous file of rank 0's process, opened by its path in /proc.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_NCCL_SEGMENT_H_
#define TANDEM_TOOLS_CUDA_EMULATION_NCCL_SEGMENT_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem::emulation {

inline constexpr int kMaxRanks = 8;
inline constexpr int kCollectiveKinds = 4;
// Of one rank in one collective. Untouched pages cost nothing.
inline constexpr size_t kSlotBytes = size_t{64} << 20;

// A rank's own line, written by that rank alone.
struct alignas(64) RankLine {
  std::atomic<pid_t> process{0};  // 0: has not joined
  std::atomic<uint64_t> sent{0};  // rounds whose data is in the slot
  std::atomic<uint64_t> read{0};  // rounds whose data of others was read
  std::atomic<uint32_t> connected[kCollectiveKinds]{};
};

class NcclSegment {
 public:
  // A new one, open in this process: its path.
  static std::string Create();

  explicit NcclSegment(const std::string& path);
  ~NcclSegment();
  NcclSegment(const NcclSegment&) = delete;
  NcclSegment& operator=(const NcclSegment&) = delete;

  RankLine& line(int rank) { return lines_[rank]; }
  std::byte* slot(int rank) { return slots_ + static_cast<size_t>(rank) * kSlotBytes; }

 private:
  RankLine* lines_ = nullptr;
  std::byte* slots_ = nullptr;
};

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_NCCL_SEGMENT_H_
