#include "worker/comm/tcp/tcp_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/comm/reduce.h"

namespace tandem::worker {
namespace {

// Parts begin at cache lines.
constexpr size_t kLineFloats = 16;

size_t PartFloats(size_t count, int ranks) {
  return (count / static_cast<size_t>(ranks) / kLineFloats + 1) * kLineFloats;
}

// The largest that another rank sends for one chunk of an all-reduce.
size_t SlotFloats(int size, const TcpCommunicator::Options& options) {
  const size_t chunk = options.chunk_bytes / sizeof(float);
  if (size <= 2) return chunk;
  return std::max(std::min(chunk, options.parts_bytes / sizeof(float)), PartFloats(chunk, size));
}

std::span<const std::byte> BytesOf(std::span<const float> values) { return std::as_bytes(values); }
std::span<std::byte> BytesOf(std::span<float> values) { return std::as_writable_bytes(values); }

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> TcpCommunicator::Open(
    const CommunicatorParts& parts) {
  TANDEM_CHECK(parts.host_stream != nullptr);
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<TcpGroup> group, TcpGroup::Open(parts));
  return std::make_unique<TcpCommunicator>(std::move(group), *parts.host_stream, Options());
}

TcpCommunicator::TcpCommunicator(std::unique_ptr<TcpGroup> group, kernels::HostStream& stream,
                                 const Options& options)
    : HostCommunicator(stream),
      group_(std::move(group)),
      options_(options),
      slot_floats_(SlotFloats(group_->size(), options)),
      scratch_(new float[slot_floats_ * static_cast<size_t>(group_->size())]) {
  TANDEM_CHECK(options.chunk_bytes > 0 && options.chunk_bytes % sizeof(float) == 0)
      << options.chunk_bytes;
}

std::span<float> TcpCommunicator::Slot(int rank, size_t count) const {
  TANDEM_CHECK(count <= slot_floats_) << count;
  return {scratch_.get() + static_cast<size_t>(rank) * slot_floats_, count};
}

template <typename Part>
absl::Status TcpCommunicator::InChunks(size_t bytes, Part part) const {
  for (size_t begin = 0; begin < bytes; begin += options_.chunk_bytes) {
    TANDEM_RETURN_IF_ERROR(part(begin, std::min(options_.chunk_bytes, bytes - begin)));
  }
  return absl::OkStatus();
}

template <typename Each>
void TcpCommunicator::ForOthers(Each each) const {
  for (int other = 0; other < size(); ++other) {
    if (other != rank()) each(other);
  }
}

absl::Status TcpCommunicator::RunAllReduce(float* data, size_t count, Deadline deadline) {
  const CollectiveTag tag{CollectiveKind::kAllReduce, 0, count * sizeof(float)};
  return InChunks(tag.bytes, [&](size_t begin, size_t bytes) {
    const std::span<float> chunk(data + begin / sizeof(float), bytes / sizeof(float));
    const bool in_parts = size() > 2 && bytes > options_.parts_bytes;
    return in_parts ? ReduceInParts(tag, chunk, deadline) : ReduceAll(tag, chunk, deadline);
  });
}

absl::Status TcpCommunicator::ReduceAll(const CollectiveTag& tag, std::span<float> data,
                                        Deadline deadline) {
  std::vector<TcpGroup::Outgoing> outgoing;
  std::vector<TcpGroup::Incoming> incoming;
  ForOthers([&](int other) {
    outgoing.push_back({other, BytesOf(std::span<const float>(data))});
    incoming.push_back({other, BytesOf(Slot(other, data.size()))});
  });
  TANDEM_RETURN_IF_ERROR(group_->Exchange(tag, outgoing, incoming, deadline));
  AddSlots(data);
  return absl::OkStatus();
}

absl::Status TcpCommunicator::ReduceInParts(const CollectiveTag& tag, std::span<float> data,
                                            Deadline deadline) {
  const size_t part = PartFloats(data.size(), size());
  const auto part_of = [&](int r) {
    const size_t begin = std::min(data.size(), static_cast<size_t>(r) * part);
    return data.subspan(begin, std::min(part, data.size() - begin));
  };
  const std::span<float> own = part_of(rank());
  std::vector<TcpGroup::Outgoing> outgoing, sums;
  std::vector<TcpGroup::Incoming> incoming, parts;
  ForOthers([&](int other) {
    outgoing.push_back({other, BytesOf(std::span<const float>(part_of(other)))});
    incoming.push_back({other, BytesOf(Slot(other, own.size()))});
    sums.push_back({other, BytesOf(std::span<const float>(own))});
    parts.push_back({other, BytesOf(part_of(other))});
  });
  TANDEM_RETURN_IF_ERROR(group_->Exchange(tag, outgoing, incoming, deadline));
  AddSlots(own);
  return group_->Exchange(tag, sums, parts, deadline);
}

void TcpCommunicator::AddSlots(std::span<float> data) const {
  std::vector<const float*> sources(static_cast<size_t>(size()), data.data());
  ForOthers([&](int other) { sources[static_cast<size_t>(other)] = Slot(other, 0).data(); });
  SumInRankOrder(sources.data(), size(), data.data(), data.size());
}

absl::Status TcpCommunicator::RunGather(const std::byte* send, size_t bytes, std::byte* recv,
                                        int root, Deadline deadline) {
  const CollectiveTag tag{CollectiveKind::kGather, static_cast<uint32_t>(root), bytes};
  if (rank() == root && send != nullptr && bytes > 0) {
    std::memmove(recv + static_cast<size_t>(root) * bytes, send, bytes);
  }
  return InChunks(bytes, [&](size_t begin, size_t part) {
    if (rank() != root) {
      const TcpGroup::Outgoing own{root, {send + begin, part}};
      return group_->Exchange(tag, {&own, 1}, {}, deadline);
    }
    std::vector<TcpGroup::Incoming> incoming;
    ForOthers([&](int other) {
      incoming.push_back({other, {recv + static_cast<size_t>(other) * bytes + begin, part}});
    });
    return group_->Exchange(tag, {}, incoming, deadline);
  });
}

absl::Status TcpCommunicator::RunAllGather(const std::byte* send, size_t bytes, std::byte* recv,
                                           Deadline deadline) {
  const CollectiveTag tag{CollectiveKind::kAllGather, 0, bytes};
  std::byte* const own = recv + static_cast<size_t>(rank()) * bytes;
  if (bytes > 0 && own != send) std::memcpy(own, send, bytes);
  return InChunks(bytes, [&](size_t begin, size_t part) {
    std::vector<TcpGroup::Outgoing> outgoing;
    std::vector<TcpGroup::Incoming> incoming;
    ForOthers([&](int other) {
      outgoing.push_back({other, {own + begin, part}});
      incoming.push_back({other, {recv + static_cast<size_t>(other) * bytes + begin, part}});
    });
    return group_->Exchange(tag, outgoing, incoming, deadline);
  });
}

absl::Status TcpCommunicator::RunBroadcast(std::byte* data, size_t bytes, int root,
                                           Deadline deadline) {
  const CollectiveTag tag{CollectiveKind::kBroadcast, static_cast<uint32_t>(root), bytes};
  return InChunks(bytes, [&](size_t begin, size_t part) {
    if (rank() != root) {
      const TcpGroup::Incoming own{root, {data + begin, part}};
      return group_->Exchange(tag, {}, {&own, 1}, deadline);
    }
    std::vector<TcpGroup::Outgoing> outgoing;
    ForOthers([&](int other) { outgoing.push_back({other, {data + begin, part}}); });
    return group_->Exchange(tag, outgoing, {}, deadline);
  });
}

}  // namespace tandem::worker
