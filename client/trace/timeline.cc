#include "client/trace/timeline.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/trace/chrome_trace.h"
#include "client/trace/request_lines.h"

namespace tandem::client {
namespace {

using Json = ChromeTrace::Json;
using Track = ChromeTrace::Track;

constexpr int kCoordinator = 1;
constexpr int kRequests = 2;
constexpr int kFirstRank = 10;
// Tracks of the coordinator: one for moments, then those of steps, which overlap.
constexpr int kMoments = 0;
// Of a rank.
constexpr int kRankSteps = 1;
constexpr int kCollectives = 2;

const char* NameOf(v1::StepSubmitted::Kind kind) {
  switch (kind) {
    case v1::StepSubmitted::PREFILL:
      return "prefill";
    case v1::StepSubmitted::DECODE:
      return "decode";
    default:
      return "mixed";
  }
}

Json ArgsOf(const v1::StepSubmitted& step, bool is_settled) {
  return {{"step", step.step()},
          {"epoch", step.epoch()},
          {"kind", NameOf(step.kind())},
          {"num_sequences", step.num_sequences()},
          {"prefill_tokens", step.prefill_tokens()},
          {"decode_tokens", step.decode_tokens()},
          {"draft_tokens", step.draft_tokens()},
          {"settled", is_settled}};
}

std::string RankName(uint32_t rank, const std::map<uint32_t, int64_t>& errors_ns) {
  const auto found = errors_ns.find(rank);
  if (found == errors_ns.end()) return absl::StrCat("rank ", rank);
  return absl::StrCat("rank ", rank, ", a clock of its own, estimated within ",
                      found->second / 1000, " us");
}

}  // namespace

void Timeline::Add(const v1::TraceResponse& response) {
  if (response.has_start()) {
    has_start_ = true;
    start_ = response.start();
  }
  num_dropped_ = response.num_dropped();
  for (const v1::TraceEvent& event : response.events()) {
    if (event.has_step_submitted()) {
      steps_[event.step_submitted().step()].submitted = event.step_submitted();
    } else if (event.has_step_settled()) {
      const auto found = steps_.find(event.step_settled().step());
      if (found != steps_.end()) found->second.settled = event.step_settled();
    } else if (event.has_rank_step()) {
      const auto found = steps_.find(event.rank_step().step());
      if (found != steps_.end()) found->second.ranks.push_back(event.rank_step());
    } else if (event.has_request()) {
      requests_.push_back(event.request());
    } else if (event.has_workers()) {
      workers_.push_back(event.workers());
    }
  }
}

size_t Timeline::num_requests() const {
  std::set<uint64_t> handles;
  for (const v1::RequestChange& change : requests_) handles.insert(change.handle());
  return handles.size();
}

int64_t Timeline::RankNs(uint64_t clock_us) const {
  constexpr int64_t kMost = int64_t{1} << 50;  // a worker may say anything
  const auto since_us = static_cast<int64_t>(clock_us - start_.clock_us());
  return std::clamp(since_us, -kMost, kMost) * 1000;
}

RankClocks Timeline::Clocks() const {
  RankClocks clocks;
  for (const auto& [number, step] : steps_) {
    for (const v1::RankStep& rank : step.ranks) {
      const int64_t received_ns = RankNs(rank.received_at_us());
      const int64_t spent_us =
          int64_t{rank.receive_us()} + rank.encode_us() + rank.submit_us() + rank.wait_us();
      clocks.Add({rank.rank(), rank.epoch()}, step.submitted.built_ns(), rank.answered_ns(),
                 received_ns, received_ns + spent_us * 1000);
    }
  }
  return clocks;
}

void Timeline::Draw(std::ostream& out) const {
  ChromeTrace trace(out);
  std::map<uint64_t, int> lines;  // of steps
  DrawCoordinator(lines, trace);
  DrawRanks(lines, trace);
  DrawRequests(trace);
  trace.Close({{"model", start_.model()},
               {"server_version", start_.version()},
               {"tensor_parallel_size", start_.tensor_parallel_size()},
               {"start_unix_us", start_.unix_us()},
               {"dropped_events", num_dropped_}});
}

void Timeline::DrawCoordinator(std::map<uint64_t, int>& lines, ChromeTrace& out) const {
  out.NameProcess(kCoordinator, "coordinator");
  out.NameTrack({kCoordinator, kMoments}, "workers and preemptions");
  std::vector<int64_t> ends_ns;  // of the last step on each line
  for (const auto& [number, step] : steps_) {
    const v1::StepSubmitted& sent = step.submitted;
    const auto free = std::find_if(ends_ns.begin(), ends_ns.end(),
                                   [&](int64_t end_ns) { return end_ns <= sent.begin_ns(); });
    const int line = static_cast<int>(free - ends_ns.begin()) + kMoments + 1;
    if (free == ends_ns.end()) {
      out.NameTrack({kCoordinator, line}, absl::StrCat("steps in flight ", ends_ns.size() + 1));
      ends_ns.push_back(step.end_ns());
    } else {
      *free = step.end_ns();
    }
    lines[number] = line;
    const Track track{kCoordinator, line};
    out.Slice(track, NameOf(sent.kind()), {sent.begin_ns(), step.end_ns()},
              ArgsOf(sent, step.is_settled()));
    out.Slice(track, "schedule", {sent.begin_ns(), sent.scheduled_ns()});
    out.Slice(track, "build", {sent.scheduled_ns(), sent.built_ns()});
    out.Slice(track, "submit", {sent.built_ns(), sent.submitted_ns()});
    if (!step.is_settled()) continue;
    const v1::StepSettled& settled = step.settled;
    out.Slice(track, "wait", {settled.begin_ns(), settled.answered_ns()});
    out.Slice(track, "apply", {settled.answered_ns(), settled.applied_ns()});
    out.Slice(track, "deliver", {settled.applied_ns(), settled.delivered_ns()});
  }
  for (const v1::WorkersChange& change : workers_) {
    out.Instant({kCoordinator, kMoments}, change.lost() ? "workers lost" : "workers replaced",
                std::max<int64_t>(change.at_ns(), 0),
                {{"epoch", change.epoch()}, {"reason", change.reason()}}, /*everywhere=*/true);
  }
}

void Timeline::DrawRanks(const std::map<uint64_t, int>& lines, ChromeTrace& out) const {
  const RankClocks clocks = Clocks();
  std::map<uint32_t, int64_t> errors_ns;
  std::set<uint32_t> ranks;
  for (const auto& [number, step] : steps_) {
    for (const v1::RankStep& rank : step.ranks) {
      const RankClocks::Offset offset = clocks.Of({rank.rank(), rank.epoch()});
      ranks.insert(rank.rank());
      if (offset.error_ns > 0) {
        int64_t& error_ns = errors_ns[rank.rank()];
        error_ns = std::max(error_ns, offset.error_ns);
      }
      DrawRankStep(step, rank, lines.at(number), offset.ns, out);
    }
  }
  for (const uint32_t rank : ranks) {
    const int process = kFirstRank + static_cast<int>(rank);
    out.NameProcess(process, RankName(rank, errors_ns));
    out.NameTrack({process, kRankSteps}, "steps");
    out.NameTrack({process, kCollectives}, "collectives, their sum in each step");
  }
}

void Timeline::DrawRankStep(const Step& step, const v1::RankStep& rank, int line, int64_t offset_ns,
                            ChromeTrace& out) const {
  const Track track{kFirstRank + static_cast<int>(rank.rank()), kRankSteps};
  const int64_t begin_ns = RankNs(rank.received_at_us()) + offset_ns;
  const std::pair<const char*, uint32_t> parts[] = {{"receive", rank.receive_us()},
                                                    {"encode", rank.encode_us()},
                                                    {"submit", rank.submit_us()},
                                                    {"compute", rank.wait_us()}};
  int64_t end_ns = begin_ns;
  for (const auto& [name, part_us] : parts) end_ns += int64_t{part_us} * 1000;
  Json args = {{"step", rank.step()}, {"epoch", rank.epoch()}};
  if (rank.has_collective_us()) args["collective_us"] = rank.collective_us();
  out.Slice(track, NameOf(step.submitted.kind()), {begin_ns, end_ns}, args);
  int64_t at_ns = begin_ns;
  for (const auto& [name, part_us] : parts) {
    out.Slice(track, name, {at_ns, at_ns + int64_t{part_us} * 1000});
    at_ns += int64_t{part_us} * 1000;
  }
  if (rank.has_collective_us()) {
    const int64_t from_ns = begin_ns + (int64_t{rank.receive_us()} + rank.encode_us()) * 1000;
    const int64_t sum_ns = int64_t{rank.collective_us()} * 1000;
    out.Slice({track.process, kCollectives}, "collectives",
              {from_ns, std::min(from_ns + sum_ns, end_ns)}, {{"step", rank.step()}});
  }
  const auto size = static_cast<uint64_t>(std::max(start_.tensor_parallel_size(), 1));
  out.Arrow(rank.step() * size + rank.rank(), {kCoordinator, line}, step.submitted.built_ns(),
            track, begin_ns);
}

void Timeline::DrawRequests(ChromeTrace& out) const {
  out.NameProcess(kRequests, "requests");
  RequestLines lines(kRequests, {kCoordinator, kMoments}, out);
  for (const v1::RequestChange& change : requests_) lines.Take(change);
}

}  // namespace tandem::client
