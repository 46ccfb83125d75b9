#include "worker/comm/shm_group.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"

namespace tandem::worker {
namespace {

constexpr uint32_t kKind = 2;
constexpr size_t kPage = 4096;

// The low bits of a rank's word; its arrivals count above them.
constexpr uint32_t kLeft = 1;
constexpr uint32_t kBroken = 2;
constexpr uint32_t kArrival = 4;

// Whether the word counts at least `arrivals`, modulo 2^30.
bool Reached(uint32_t word, uint32_t arrivals) {
  return static_cast<int32_t>((word & ~(kArrival - 1)) - arrivals * kArrival) >= 0;
}

// On separate cache lines.
struct alignas(128) RankLine {
  transport::SharedWord arrived;
  CollectiveTag tags[2];  // of the chunk that uses the buffer of this parity
  std::atomic<int32_t> pid;
};

}  // namespace

// The start of the segment; buffers follow at BuffersOffset. All zero at first but for the header.
struct ShmGroupLayout {
  enum State : uint32_t { kIntact = 0, kBreaking = 1, kBrokenDown = 2 };

  transport::ShmHeader header;
  uint32_t size;
  uint64_t buffer_bytes;
  alignas(128) std::atomic<uint32_t> state;
  uint32_t code;  // this and the reason are valid once kBrokenDown
  uint32_t reason_bytes;
  char reason[244];
  RankLine ranks[ShmGroup::kMaxRanks];
};

namespace {

constexpr size_t BuffersOffset() { return (sizeof(ShmGroupLayout) + kPage - 1) / kPage * kPage; }

size_t SegmentBytes(int size, size_t buffer_bytes) {
  return BuffersOffset() + size_t{2} * size * buffer_bytes;
}

ShmGroupLayout* LayoutOf(const transport::ShmSegment& segment) {
  return reinterpret_cast<ShmGroupLayout*>(segment.data());
}

void CheckArguments(int rank, int size, const ShmGroupOptions& options) {
  TANDEM_CHECK(size >= 1 && size <= ShmGroup::kMaxRanks && rank >= 0 && rank < size)
      << rank << "/" << size;
  TANDEM_CHECK(options.buffer_bytes > 0 && options.buffer_bytes % kPage == 0)
      << options.buffer_bytes;
}

}  // namespace

ShmGroup::ShmGroup(std::shared_ptr<transport::ShmSegment> segment, int rank, int size,
                   const ShmGroupOptions& options)
    : segment_(std::move(segment)),
      layout_(LayoutOf(*segment_)),
      rank_(rank),
      size_(size),
      options_(options),
      policy_(transport::SpinPolicy::For(size, options.spin, options.yield)) {}

ShmGroup::~ShmGroup() { transport::SetBitsAndNotify(layout_->ranks[rank_].arrived, kLeft); }

absl::StatusOr<std::unique_ptr<ShmGroup>> ShmGroup::Create(int size, Epoch epoch,
                                                           const ShmGroupOptions& options) {
  CheckArguments(0, size, options);
  TANDEM_ASSIGN_OR_RETURN(
      auto segment,
      transport::ShmSegment::Create(SegmentBytes(size, options.buffer_bytes), kKind, epoch));
  LayoutOf(*segment)->size = static_cast<uint32_t>(size);
  LayoutOf(*segment)->buffer_bytes = options.buffer_bytes;
  return Join(std::move(segment), 0, size, options);
}

absl::StatusOr<std::unique_ptr<ShmGroup>> ShmGroup::Open(const std::string& address, int rank,
                                                         int size, Epoch epoch,
                                                         const ShmGroupOptions& options) {
  CheckArguments(rank, size, options);
  TANDEM_ASSIGN_OR_RETURN(auto segment, transport::ShmSegment::Open(address, kKind, epoch));
  return Join(std::move(segment), rank, size, options);
}

absl::StatusOr<std::unique_ptr<ShmGroup>> ShmGroup::OpenHere(int rank) const {
  return Join(segment_, rank, size_, options_);
}

absl::StatusOr<std::unique_ptr<ShmGroup>> ShmGroup::Join(
    std::shared_ptr<transport::ShmSegment> segment, int rank, int size,
    const ShmGroupOptions& options) {
  if (segment->bytes() < SegmentBytes(size, options.buffer_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("communicator: a segment of ", segment->bytes(),
                                                   " bytes, needed ",
                                                   SegmentBytes(size, options.buffer_bytes)));
  }
  ShmGroupLayout* layout = LayoutOf(*segment);
  if (layout->size != static_cast<uint32_t>(size) || layout->buffer_bytes != options.buffer_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("communicator: the segment is of ", layout->size, " ranks and buffers of ",
                     layout->buffer_bytes, " bytes, not ", size, " and ", options.buffer_bytes));
  }
  int32_t owner = 0;
  if (!layout->ranks[rank].pid.compare_exchange_strong(owner, getpid())) {
    return absl::FailedPreconditionError(
        absl::StrCat("communicator: rank ", rank, " is process ", owner, " already"));
  }
  return std::unique_ptr<ShmGroup>(new ShmGroup(std::move(segment), rank, size, options));
}

absl::Status ShmGroup::Begin(const CollectiveTag& tag, Deadline deadline) {
  TANDEM_RETURN_IF_ERROR(CheckIntact());
  ++chunk_;
  tag_ = tag;
  arrived_in_chunk_ = false;
  // A rank that arrived in the previous chunk is done with the one before it, which used these
  // buffers.
  for (int rank = 0; rank < size_; ++rank) {
    TANDEM_RETURN_IF_ERROR(Await(rank, first_in_chunk_, deadline));
  }
  layout_->ranks[rank_].tags[chunk_ % 2] = tag;
  return absl::OkStatus();
}

std::byte* ShmGroup::buffer(int rank) const {
  const size_t index = size_t{2} * rank + chunk_ % 2;
  return segment_->data() + BuffersOffset() + index * options_.buffer_bytes;
}

void ShmGroup::Arrive() {
  ++arrivals_;
  if (!std::exchange(arrived_in_chunk_, true)) first_in_chunk_ = arrivals_;
  transport::AddAndNotify(layout_->ranks[rank_].arrived, kArrival);
}

absl::Status ShmGroup::AwaitRank(int rank, Deadline deadline) {
  TANDEM_RETURN_IF_ERROR(Await(rank, arrivals_, deadline));
  const CollectiveTag theirs = layout_->ranks[rank].tags[chunk_ % 2];
  if (theirs == tag_) return absl::OkStatus();
  return Break(TagMismatch(rank_, tag_, absl::StrCat("rank ", rank), theirs));
}

absl::Status ShmGroup::AwaitAll(Deadline deadline) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) TANDEM_RETURN_IF_ERROR(AwaitRank(rank, deadline));
  }
  return absl::OkStatus();
}

absl::Status ShmGroup::Await(int rank, uint32_t arrivals, Deadline deadline) {
  transport::SharedWord& word = layout_->ranks[rank].arrived;
  while (true) {
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    if (Reached(seen, arrivals)) return absl::OkStatus();
    TANDEM_RETURN_IF_ERROR(CheckIntact());
    if (seen & kLeft) {
      return Break(absl::UnavailableError(absl::StrCat("communicator: rank ", rank, " of ", size_,
                                                       " has left, at ", ToString(tag_))));
    }
    if (deadline.Passed()) return Break(MissingRanks(MissingList(arrivals), size_, tag_));
    WaitWhile(word, seen, policy_, deadline);
  }
}

void ShmGroup::Abort(const absl::Status& reason) { (void)Break(AbortReason(reason)); }

void ShmGroup::testing_SetArrivals(uint32_t arrivals) {
  arrivals_ = first_in_chunk_ = arrivals;
  layout_->ranks[rank_].arrived.value.store(arrivals * kArrival);
}

absl::Status ShmGroup::CheckIntact() const {
  if (layout_->state.load(std::memory_order_acquire) != ShmGroupLayout::kBrokenDown) {
    return absl::OkStatus();
  }
  // Written by another process: untrusted.
  const uint32_t code = layout_->code;
  const size_t bytes = std::min<size_t>(layout_->reason_bytes, sizeof(layout_->reason));
  const bool known = code > 0 && code <= static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInternal,
                      absl::string_view(layout_->reason, bytes));
}

absl::Status ShmGroup::Break(const absl::Status& reason) {
  uint32_t intact = ShmGroupLayout::kIntact;
  if (layout_->state.compare_exchange_strong(intact, ShmGroupLayout::kBreaking,
                                             std::memory_order_acq_rel)) {
    layout_->code = static_cast<uint32_t>(reason.code());
    layout_->reason_bytes = std::min(reason.message().size(), sizeof(layout_->reason));
    std::memcpy(layout_->reason, reason.message().data(), layout_->reason_bytes);
    layout_->state.store(ShmGroupLayout::kBrokenDown, std::memory_order_release);
  }
  // Changes every word, so that no rank stays parked; also if a peer broke the group, since it may
  // have died in between.
  for (int rank = 0; rank < size_; ++rank) {
    transport::SetBitsAndNotify(layout_->ranks[rank].arrived, kBroken);
  }
  const absl::Status why = CheckIntact();
  return why.ok() ? reason : why;
}

std::string ShmGroup::MissingList(uint32_t arrivals) const {
  std::string list;
  for (int rank = 0; rank < size_; ++rank) {
    const RankLine& line = layout_->ranks[rank];
    if (Reached(line.arrived.value.load(std::memory_order_acquire), arrivals)) continue;
    absl::StrAppend(&list, list.empty() ? "" : ", ", rank);
  }
  return list;
}

}  // namespace tandem::worker
