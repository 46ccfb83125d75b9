// Timeline: a recording of a server (proto/tandem/v1/trace.proto) as a picture: a process for the
// coordinator with its steps and their parts, one for each rank, and one with a line per request.
//
//   Timeline timeline;
//   while (reader->Read(&response)) timeline.Add(response);
//   timeline.Draw(out);
//
// What a recording has lost, or what lies before or after it, leaves gaps, never an error. One
// thread.
#ifndef TANDEM_CLIENT_TRACE_TIMELINE_H_
#define TANDEM_CLIENT_TRACE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <vector>

#include "client/trace/rank_clocks.h"
#include "proto/tandem/v1/trace.pb.h"

namespace tandem::client {

class ChromeTrace;

class Timeline {
 public:
  void Add(const v1::TraceResponse& response);

  bool has_start() const { return has_start_; }
  size_t num_steps() const { return steps_.size(); }
  size_t num_requests() const;
  uint64_t num_dropped() const { return num_dropped_; }

  // Writes all as a file of Chrome's Trace Event Format.
  void Draw(std::ostream& out) const;

 private:
  // A step that was sent, and what is known of its end.
  struct Step {
    v1::StepSubmitted submitted;
    v1::StepSettled settled;  // of step 0: it is not known
    std::vector<v1::RankStep> ranks{};

    bool is_settled() const { return settled.step() != 0; }
    int64_t end_ns() const {
      return is_settled() ? settled.delivered_ns() : submitted.submitted_ns();
    }
  };

  // A rank's time as if its clock were the coordinator's.
  int64_t RankNs(uint64_t clock_us) const;
  RankClocks Clocks() const;
  void DrawCoordinator(std::map<uint64_t, int>& lines, ChromeTrace& out) const;
  void DrawRanks(const std::map<uint64_t, int>& lines, ChromeTrace& out) const;
  void DrawRankStep(const Step& step, const v1::RankStep& rank, int line, int64_t offset_ns,
                    ChromeTrace& out) const;
  void DrawRequests(ChromeTrace& out) const;

  bool has_start_ = false;
  v1::TraceStart start_;
  std::map<uint64_t, Step> steps_;  // by number
  std::vector<v1::RequestChange> requests_;
  std::vector<v1::WorkersChange> workers_;
  uint64_t num_dropped_ = 0;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_TRACE_TIMELINE_H_
