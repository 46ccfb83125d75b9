#include "worker/comm/shm_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/comm/reduce.h"

namespace tandem::worker {
namespace {

// Threshold for the two-shot all-reduce, which costs a second barrier; with three ranks or more.
constexpr size_t kReduceInPartsBytes = 64 << 10;
// Parts begin at cache lines.
constexpr size_t kLineFloats = 16;

float* Floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

void Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ShmCommunicator::Open(
    const CommunicatorParts& parts) {
  TANDEM_CHECK(parts.host_stream != nullptr);
  const std::string key = absl::StrCat("communicator/", parts.epoch.value);
  std::unique_ptr<ShmGroup> group;
  if (parts.rank == 0) {
    TANDEM_ASSIGN_OR_RETURN(group, ShmGroup::Create(parts.size, parts.epoch, {}));
    TANDEM_RETURN_IF_ERROR(parts.rendezvous.Put(key, group->address()));
  } else {
    TANDEM_ASSIGN_OR_RETURN(const std::string address, parts.rendezvous.Get(key, parts.deadline));
    TANDEM_ASSIGN_OR_RETURN(group,
                            ShmGroup::Open(address, parts.rank, parts.size, parts.epoch, {}));
  }
  return std::make_unique<ShmCommunicator>(std::move(group), *parts.host_stream);
}

absl::Status ShmCommunicator::Join(Deadline deadline) {
  TANDEM_RETURN_IF_ERROR(group_->Begin({CollectiveKind::kJoin, 0, 0}, deadline));
  group_->Arrive();
  return group_->AwaitAll(deadline);
}

absl::Status ShmCommunicator::RunAllReduce(float* data, size_t count, Deadline deadline) {
  const CollectiveTag tag{CollectiveKind::kAllReduce, 0, count * sizeof(float)};
  const size_t chunk = group_->buffer_bytes() / sizeof(float);
  for (size_t begin = 0; begin < count; begin += chunk) {
    const size_t part = std::min(chunk, count - begin);
    TANDEM_RETURN_IF_ERROR(group_->Begin(tag, deadline));
    Copy(group_->buffer(rank()), data + begin, part * sizeof(float));
    group_->Arrive();
    TANDEM_RETURN_IF_ERROR(group_->AwaitAll(deadline));
    const bool in_parts = size() > 2 && part * sizeof(float) >= kReduceInPartsBytes;
    TANDEM_RETURN_IF_ERROR(in_parts ? ReduceChunkInParts(data + begin, part, deadline)
                                    : ReduceChunk(data + begin, part, deadline));
  }
  return absl::OkStatus();
}

absl::Status ShmCommunicator::ReduceChunk(float* data, size_t count, Deadline) {
  std::array<const float*, ShmGroup::kMaxRanks> sources;
  for (int r = 0; r < size(); ++r) sources[r] = Floats(group_->buffer(r));
  SumInRankOrder(sources.data(), size(), data, count);
  return absl::OkStatus();
}

// This rank writes its part of the sum over the same part of its buffer, which no other rank reads
// before the second barrier.
absl::Status ShmCommunicator::ReduceChunkInParts(float* data, size_t count, Deadline deadline) {
  const size_t part = (count / size() / kLineFloats + 1) * kLineFloats;
  const auto begin_of = [&](int r) { return std::min(count, r * part); };
  const size_t begin = begin_of(rank());
  std::array<const float*, ShmGroup::kMaxRanks> sources;
  for (int r = 0; r < size(); ++r) sources[r] = Floats(group_->buffer(r)) + begin;
  SumInRankOrder(sources.data(), size(), Floats(group_->buffer(rank())) + begin,
                 begin_of(rank() + 1) - begin);
  group_->Arrive();
  for (int i = 0; i < size(); ++i) {
    // Ranks start at their own part and rotate, so that not all read the same buffer at once.
    const int r = (rank() + i) % size();
    if (r != rank()) TANDEM_RETURN_IF_ERROR(group_->AwaitRank(r, deadline));
    const size_t at = begin_of(r);
    Copy(data + at, Floats(group_->buffer(r)) + at, (begin_of(r + 1) - at) * sizeof(float));
  }
  return absl::OkStatus();
}

absl::Status ShmCommunicator::RunGather(const std::byte* send, size_t bytes, std::byte* recv,
                                        int root, Deadline deadline) {
  const CollectiveTag tag{CollectiveKind::kGather, static_cast<uint32_t>(root), bytes};
  for (size_t begin = 0; begin < bytes; begin += group_->buffer_bytes()) {
    const size_t part = std::min(group_->buffer_bytes(), bytes - begin);
    TANDEM_RETURN_IF_ERROR(group_->Begin(tag, deadline));
    if (rank() != root) Copy(group_->buffer(rank()), send + begin, part);
    group_->Arrive();
    if (rank() == root) {
      TANDEM_RETURN_IF_ERROR(Collect(send, begin, part, bytes, recv, deadline));
    }
  }
  return absl::OkStatus();
}

absl::Status ShmCommunicator::RunAllGather(const std::byte* send, size_t bytes, std::byte* recv,
                                           Deadline deadline) {
  const CollectiveTag tag{CollectiveKind::kAllGather, 0, bytes};
  for (size_t begin = 0; begin < bytes; begin += group_->buffer_bytes()) {
    const size_t part = std::min(group_->buffer_bytes(), bytes - begin);
    TANDEM_RETURN_IF_ERROR(group_->Begin(tag, deadline));
    Copy(group_->buffer(rank()), send + begin, part);
    group_->Arrive();
    TANDEM_RETURN_IF_ERROR(Collect(send, begin, part, bytes, recv, deadline));
  }
  return absl::OkStatus();
}

absl::Status ShmCommunicator::Collect(const std::byte* send, size_t offset, size_t bytes,
                                      size_t total, std::byte* recv, Deadline deadline) {
  if (send != nullptr) Copy(recv + rank() * total + offset, send + offset, bytes);
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    TANDEM_RETURN_IF_ERROR(group_->AwaitRank(r, deadline));
    Copy(recv + r * total + offset, group_->buffer(r), bytes);
  }
  return absl::OkStatus();
}

absl::Status ShmCommunicator::RunBroadcast(std::byte* data, size_t bytes, int root,
                                           Deadline deadline) {
  const CollectiveTag tag{CollectiveKind::kBroadcast, static_cast<uint32_t>(root), bytes};
  for (size_t begin = 0; begin < bytes; begin += group_->buffer_bytes()) {
    const size_t part = std::min(group_->buffer_bytes(), bytes - begin);
    TANDEM_RETURN_IF_ERROR(group_->Begin(tag, deadline));
    if (rank() == root) Copy(group_->buffer(rank()), data + begin, part);
    group_->Arrive();
    if (rank() == root) continue;
    TANDEM_RETURN_IF_ERROR(group_->AwaitRank(root, deadline));
    Copy(data + begin, group_->buffer(root), part);
  }
  return absl::OkStatus();
}

}  // namespace tandem::worker
