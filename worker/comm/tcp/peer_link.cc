#include "worker/comm/tcp/peer_link.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/net/stream_socket.h"

namespace tandem::worker {
namespace {

constexpr size_t kMaxAbortBytes = 4096;
// At a time, of how many frames.
constexpr size_t kSkipBytes = 64 << 10;
constexpr int kSkipFrames = 16;

}  // namespace

void PeerLink::Send(const CollectiveTag& tag, std::span<const std::byte> payload) {
  TANDEM_CHECK(!sending_) << "to rank " << ranks_.peer;
  sending_ = true;
  out_header_ = FrameHeader::Of(tag, payload.size());
  out_header_sent_ = 0;
  out_ = payload;
}

void PeerLink::Receive(const CollectiveTag& tag, std::span<std::byte> payload) {
  TANDEM_CHECK(!receiving_) << "from rank " << ranks_.peer;
  receiving_ = true;
  in_tag_ = tag;
  in_ = payload;
  in_filled_ = 0;
}

absl::StatusOr<bool> PeerLink::Progress() {
  bool moved = false;
  if (receiving_) TANDEM_RETURN_IF_ERROR(ProgressReceive(moved));
  if (sending_) TANDEM_RETURN_IF_ERROR(ProgressSend(moved));
  return moved;
}

absl::Status PeerLink::ProgressSend(bool& moved) {
  const size_t left_before = out_header_.wire().size() - out_header_sent_ + out_.size();
  if (out_header_sent_ < sizeof(FrameHeader)) {
    const auto header = std::as_const(out_header_).wire().subspan(out_header_sent_);
    const absl::StatusOr<size_t> taken = socket_->Write(header);
    if (!taken.ok()) return Left(taken.status());
    out_header_sent_ += *taken;
  }
  if (out_header_sent_ == sizeof(FrameHeader) && !out_.empty()) {
    const absl::StatusOr<size_t> taken = socket_->Write(out_);
    if (!taken.ok()) return Left(taken.status());
    out_ = out_.subspan(*taken);
  }
  const absl::StatusOr<bool> flushed = socket_->Flush();
  if (!flushed.ok()) return Left(flushed.status());
  const size_t left = out_header_.wire().size() - out_header_sent_ + out_.size();
  moved = moved || left < left_before || *flushed;
  sending_ = left > 0 || !*flushed;
  return absl::OkStatus();
}

absl::Status PeerLink::ProgressReceive(bool& moved) {
  TANDEM_ASSIGN_OR_RETURN(const bool begun, ReadHeader(moved));
  if (!begun) return absl::OkStatus();
  if (in_header_.tag() != in_tag_ || in_header_.payload_bytes != in_.size()) return Mismatch();
  TANDEM_ASSIGN_OR_RETURN(const bool filled, Fill(in_, in_filled_, moved));
  if (!filled) return absl::OkStatus();
  receiving_ = false;
  in_header_filled_ = 0;
  return absl::OkStatus();
}

// A rank that breaks the group sends the reason after the frames that it had sent before: frames up
// to there are skipped.
absl::Status PeerLink::Mismatch() {
  const absl::Status mismatch =
      TagMismatch(ranks_.own, in_tag_, absl::StrCat("rank ", ranks_.peer), in_header_.tag());
  bool moved = false;
  std::vector<std::byte> skipped(kSkipBytes);
  for (int frame = 0; frame < kSkipFrames; ++frame) {
    for (size_t left = in_header_.payload_bytes; left > 0;) {
      size_t filled = 0;
      const auto piece = std::span(skipped).first(std::min(left, skipped.size()));
      if (!Fill(piece, filled, moved).ok() || filled == 0) return mismatch;
      left -= filled;
    }
    in_header_filled_ = 0;
    const absl::StatusOr<bool> next = ReadHeader(moved);
    if (!next.ok()) return in_header_filled_ == sizeof(FrameHeader) ? next.status() : mismatch;
    if (!*next) return mismatch;
  }
  return mismatch;
}

absl::Status PeerLink::CheckAborted() {
  bool moved = false;
  const absl::Status status = ReadHeader(moved).status();
  left_ = absl::IsUnavailable(status) && in_header_filled_ == 0;
  return left_ ? absl::OkStatus() : status;
}

absl::Status PeerLink::CheckAnswers() const {
  if (!net::IsUnanswered(fd())) return absl::OkStatus();
  return Left(absl::UnavailableError("its machine does not answer"));
}

short PeerLink::events() const {
  // Between frames there may come an abort.
  const bool may_hear =
      !left_ && (in_header_filled_ < sizeof(FrameHeader) || in_header_.kind == FrameHeader::kAbort);
  return static_cast<short>((receiving_ || may_hear ? POLLIN : 0) | (sending_ ? POLLOUT : 0));
}

absl::StatusOr<bool> PeerLink::ReadHeader(bool& moved) {
  TANDEM_ASSIGN_OR_RETURN(const bool filled, Fill(in_header_.wire(), in_header_filled_, moved));
  if (!filled || in_header_.kind != FrameHeader::kAbort) return filled;
  return ReadAbort(moved);
}

absl::StatusOr<bool> PeerLink::ReadAbort(bool& moved) {
  if (abort_message_.empty()) {
    abort_message_.resize(std::min<uint64_t>(in_header_.payload_bytes, kMaxAbortBytes));
  }
  const auto bytes = std::as_writable_bytes(std::span(abort_message_));
  TANDEM_ASSIGN_OR_RETURN(const bool filled, Fill(bytes, abort_filled_, moved));
  if (!filled) return false;
  return AbortReason(absl::Status(static_cast<absl::StatusCode>(in_header_.root), abort_message_));
}

absl::StatusOr<bool> PeerLink::Fill(std::span<std::byte> bytes, size_t& filled, bool& moved) {
  if (filled == bytes.size()) return true;
  const absl::StatusOr<size_t> count = socket_->Read(bytes.subspan(filled));
  if (!count.ok()) return Left(count.status());
  filled += *count;
  moved = moved || *count > 0;
  return filled == bytes.size();
}

void PeerLink::Abort(const absl::Status& reason) {
  const bool half_sent = sending_ && out_header_sent_ > 0;
  if (!half_sent) {
    const absl::string_view message = reason.message().substr(0, kMaxAbortBytes);
    const FrameHeader header{.kind = FrameHeader::kAbort,
                             .root = static_cast<uint32_t>(reason.code()),
                             .bytes = 0,
                             .payload_bytes = message.size()};
    // If there is no room the other rank learns that this one has left.
    bool sent = socket_->Write(header.wire()).ok();
    sent = sent && socket_->Write(std::as_bytes(std::span(message.data(), message.size()))).ok();
    if (sent) socket_->Flush().IgnoreError();
  }
  socket_->ShutDown();
}

absl::Status PeerLink::Left(const absl::Status& why) const {
  return absl::UnavailableError(absl::StrCat("communicator: rank ", ranks_.peer, " of ",
                                             ranks_.size, " has left: ", why.message()));
}

}  // namespace tandem::worker
