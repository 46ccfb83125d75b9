// ShmGroup: one rank's view of the shared memory of a communicator group: arrival counters, the
// buffers that carry data, and the abort word.
//
// Data is processed in chunks. Every rank has two buffers, used in turn, and a word that counts its
// arrivals. A chunk is:
//   Begin(tag)    waits until all ranks have arrived in the previous chunk, so that no rank still
//                 reads this chunk's buffers
//   buffer(rank())  is written
//   Arrive()      publishes it; may happen twice in a chunk (the same number of times on every
//   rank) AwaitRank(r)  waits for rank r's arrival; buffer(r) may then be read until this rank's
//   next Begin
// So one wait per chunk is enough. Errors break the group for all ranks: every rank returns the
// first one. One thread per rank, except Abort, which any thread may call.
#ifndef TANDEM_WORKER_COMM_SHM_GROUP_H_
#define TANDEM_WORKER_COMM_SHM_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/transport/shared_futex.h"
#include "common/transport/shm_segment.h"
#include "worker/comm/collective.h"

namespace tandem::worker {

struct ShmGroupLayout;

struct ShmGroupOptions {
  // Bytes of one buffer and so of the largest chunk; a multiple of 4096. Two fit in a core's L2
  // cache.
  size_t buffer_bytes = size_t{256} << 10;
  // How long a wait polls: first with pause, then with sched_yield. A yield costs a fraction of a
  // microsecond on an idle core, and on a busy one may run the rank that is waited for. So the
  // pause phase is short, and skipped if there are more ranks than cores.
  Duration spin = std::chrono::microseconds(8);
  Duration yield = std::chrono::microseconds(150);
};

class ShmGroup {
 public:
  static constexpr int kMaxRanks = 64;

  // Memory for `size` ranks, made by rank 0; the address is for the others' Open.
  static absl::StatusOr<std::unique_ptr<ShmGroup>> Create(int size, Epoch epoch,
                                                          const ShmGroupOptions& options);
  // Errors of ShmSegment::Open; INVALID_ARGUMENT when the segment is of another group;
  // FAILED_PRECONDITION for a rank taken.
  static absl::StatusOr<std::unique_ptr<ShmGroup>> Open(const std::string& address, int rank,
                                                        int size, Epoch epoch,
                                                        const ShmGroupOptions& options);
  // The same over this process's mapping, so that thread checkers see all ranks at the same
  // addresses.
  absl::StatusOr<std::unique_ptr<ShmGroup>> OpenHere(int rank) const;

  // Leaves: ranks waiting for this one fail at once.
  ~ShmGroup();

  int rank() const { return rank_; }
  int size() const { return size_; }
  size_t buffer_bytes() const { return options_.buffer_bytes; }
  std::string address() const { return segment_->address(); }

  absl::Status Begin(const CollectiveTag& tag, Deadline deadline);
  // Of the current chunk.
  std::byte* buffer(int rank) const;
  void Arrive();
  // Waits until `rank` has arrived as often as this rank.
  absl::Status AwaitRank(int rank, Deadline deadline);
  absl::Status AwaitAll(Deadline deadline);

  // Thread-safe.
  void Abort(const absl::Status& reason);

  // Pretends that this many arrivals have happened; before the first chunk, the same on every rank.
  void testing_SetArrivals(uint32_t arrivals);

 private:
  ShmGroup(std::shared_ptr<transport::ShmSegment> segment, int rank, int size,
           const ShmGroupOptions& options);
  static absl::StatusOr<std::unique_ptr<ShmGroup>> Join(
      std::shared_ptr<transport::ShmSegment> segment, int rank, int size,
      const ShmGroupOptions& options);

  absl::Status Await(int rank, uint32_t arrivals, Deadline deadline);
  // OK, or why the group is broken.
  absl::Status CheckIntact() const;
  // Breaks the group with `reason` unless it is broken; returns why it is.
  absl::Status Break(const absl::Status& reason);
  std::string MissingList(uint32_t arrivals) const;

  const std::shared_ptr<transport::ShmSegment> segment_;
  ShmGroupLayout* const layout_;
  const int rank_;
  const int size_;
  const ShmGroupOptions options_;
  const transport::SpinPolicy policy_;

  CollectiveTag tag_;            // of the current chunk
  uint32_t chunk_ = 0;           // its parity chooses the buffer
  uint32_t arrivals_ = 0;        // of this rank; wraps
  uint32_t first_in_chunk_ = 0;  // arrivals_ after the first Arrive of the current or last chunk
  bool arrived_in_chunk_ = false;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_SHM_GROUP_H_
