#include "client/trace/timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace tandem::client {
namespace {

using nlohmann::json;

constexpr uint64_t kClock = 5'000'000;  // the coordinator's, at the start

class TimelineTest : public testing::Test {
 protected:
  TimelineTest() {
    response_.mutable_start()->set_model("a \"model\"");
    response_.mutable_start()->set_tensor_parallel_size(2);
    response_.mutable_start()->set_clock_us(kClock);
  }

  // Of `at_us` to `at_us` + 10, sent; its answer comes 100 us after `at_us`.
  void Submit(uint64_t step, int64_t at_us) {
    v1::StepSubmitted& sent = *response_.add_events()->mutable_step_submitted();
    sent.set_step(step);
    sent.set_epoch(1);
    sent.set_kind(v1::StepSubmitted::DECODE);
    sent.set_num_sequences(2);
    sent.set_decode_tokens(2);
    sent.set_begin_ns(at_us * 1000);
    sent.set_scheduled_ns((at_us + 3) * 1000);
    sent.set_built_ns((at_us + 5) * 1000);
    sent.set_submitted_ns((at_us + 10) * 1000);
  }
  void Settle(uint64_t step, int64_t at_us) {
    v1::StepSettled& settled = *response_.add_events()->mutable_step_settled();
    settled.set_step(step);
    settled.set_begin_ns((at_us + 20) * 1000);
    settled.set_answered_ns((at_us + 100) * 1000);
    settled.set_applied_ns((at_us + 104) * 1000);
    settled.set_delivered_ns((at_us + 110) * 1000);
  }
  // From `at_us` + 15 to `at_us` + 90.
  v1::RankStep& Rank(uint32_t rank, uint64_t step, int64_t at_us) {
    v1::RankStep& out = *response_.add_events()->mutable_rank_step();
    out.set_rank(rank);
    out.set_step(step);
    out.set_epoch(1);
    out.set_received_at_us(kClock + static_cast<uint64_t>(at_us) + 15);
    out.set_receive_us(5);
    out.set_encode_us(9);
    out.set_submit_us(1);
    out.set_wait_us(60);
    out.set_answered_ns((at_us + 100) * 1000);
    return out;
  }
  v1::RequestChange& Change(v1::RequestChange::What what, int64_t at_us, uint64_t handle = 7) {
    v1::RequestChange& change = *response_.add_events()->mutable_request();
    change.set_what(what);
    change.set_handle(handle);
    change.set_at_ns(at_us * 1000);
    if (what == v1::RequestChange::ARRIVED) change.set_request_id("id \"\n");
    return change;
  }

  json Draw() {
    timeline_.Add(response_);
    std::ostringstream out;
    timeline_.Draw(out);
    return json::parse(out.str());
  }
  // "NAME from-to" of a track's slices, in the file's order.
  static std::vector<std::string> Slices(const json& trace, int pid, int tid) {
    std::vector<std::string> found;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] != "X" || event["pid"] != pid || event["tid"] != tid) continue;
      std::ostringstream text;
      text << event["name"].get<std::string>() << " " << event["ts"].get<double>() << "-"
           << event["ts"].get<double>() + event["dur"].get<double>();
      found.push_back(text.str());
    }
    return found;
  }
  // "b NAME at" and "e NAME at".
  static std::vector<std::string> Spans(const json& trace) {
    std::vector<std::string> found;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] != "b" && event["ph"] != "e") continue;
      std::ostringstream text;
      text << event["ph"].get<std::string>() << " " << event["name"].get<std::string>() << " "
           << event["ts"].get<double>();
      found.push_back(text.str());
    }
    return found;
  }
  static std::string ProcessName(const json& trace, int pid) {
    for (const json& event : trace["traceEvents"]) {
      if (event["name"] == "process_name" && event["pid"] == pid) return event["args"]["name"];
    }
    return "";
  }

  v1::TraceResponse response_;
  Timeline timeline_;
};

using Texts = std::vector<std::string>;

TEST_F(TimelineTest, AnEmptyRecordingIsAFile) {
  const json trace = Draw();
  EXPECT_EQ(trace["otherData"]["model"], "a \"model\"");
  EXPECT_EQ(trace["otherData"]["dropped_events"], 0);
  EXPECT_TRUE(Slices(trace, 1, 1).empty());
}

TEST_F(TimelineTest, StepsInFlightHaveLinesOfTheirOwn) {
  Submit(1, 100);
  Submit(2, 150);
  Settle(1, 100);
  Submit(3, 210);  // as soon as the first has settled
  const json trace = Draw();
  EXPECT_EQ(Slices(trace, 1, 1),
            (Texts{"decode 100-210", "schedule 100-103", "build 103-105", "submit 105-110",
                   "wait 120-200", "apply 200-204", "deliver 204-210", "decode 210-220",
                   "schedule 210-213", "build 213-215", "submit 215-220"}));
  EXPECT_EQ(Slices(trace, 1, 2),
            (Texts{"decode 150-160", "schedule 150-153", "build 153-155", "submit 155-160"}));
  EXPECT_EQ(timeline_.num_steps(), 3u);
}

TEST_F(TimelineTest, RanksAndArrowsToThem) {
  Submit(4, 100);
  Rank(0, 4, 100);
  Rank(1, 4, 101).set_collective_us(50);
  Settle(4, 101);
  const json trace = Draw();
  EXPECT_EQ(Slices(trace, 10, 1), (Texts{"decode 115-190", "receive 115-120", "encode 120-129",
                                         "submit 129-130", "compute 130-190"}));
  EXPECT_EQ(Slices(trace, 11, 1)[0], "decode 116-191");
  EXPECT_TRUE(Slices(trace, 10, 2).empty()) << "not measured";
  EXPECT_EQ(Slices(trace, 11, 2), (Texts{"collectives 130-180"}));
  EXPECT_EQ(ProcessName(trace, 10), "rank 0");
  EXPECT_EQ(ProcessName(trace, 11), "rank 1");
  Texts arrows;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    std::ostringstream text;
    text << event["ph"].get<std::string>() << event["id"] << " " << event["pid"] << " "
         << event["ts"].get<double>();
    arrows.push_back(text.str());
  }
  EXPECT_EQ(arrows, (Texts{"s8 1 105", "f8 10 115", "s9 1 105", "f9 11 116"}));
}

TEST_F(TimelineTest, ARankWithAClockOfItsOwnIsMovedAndSaysSo) {
  Submit(4, 100);
  v1::RankStep& rank = Rank(1, 4, 100);
  rank.set_received_at_us(3);  // its host has just started
  Settle(4, 100);
  const json trace = Draw();
  // 95 us at most from the begin of its sending to its answer, 75 of them its own.
  EXPECT_EQ(Slices(trace, 11, 1)[0], "decode 115-190");
  EXPECT_EQ(ProcessName(trace, 11), "rank 1, a clock of its own, estimated within 10 us");
}

TEST_F(TimelineTest, ARequestsPhases) {
  Change(v1::RequestChange::ARRIVED, -50).set_trace_id("t");
  Change(v1::RequestChange::SCHEDULED, 10);
  Change(v1::RequestChange::DECODES, 30);
  Change(v1::RequestChange::PREEMPTED, 40);
  Change(v1::RequestChange::SCHEDULED, 60);
  Change(v1::RequestChange::DECODES, 70);
  Change(v1::RequestChange::ENDED, 90).set_reason("length");
  const json trace = Draw();
  const std::string name = "request id \"\n";
  EXPECT_EQ(Spans(trace),
            (Texts{"b " + name + " 0", "b queue 0", "e queue 10", "b prefill 10", "e prefill 30",
                   "b decode 30", "e decode 40", "b queue 40", "e queue 60", "b prefill 60",
                   "e prefill 70", "b decode 70", "e decode 90", "e " + name + " 90"}));
  Texts moments;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "i") moments.push_back(event["name"]);
    if (event["ph"] == "b" && event["name"] == name) {
      EXPECT_EQ(event["args"]["trace_id"], "t");
    }
  }
  EXPECT_EQ(moments, (Texts{name + " preempted"}));
  EXPECT_EQ(timeline_.num_requests(), 1u);
}

TEST_F(TimelineTest, ARequestThatGoesOnIsOpen) {
  Change(v1::RequestChange::ARRIVED, 5);
  Change(v1::RequestChange::SCHEDULED, 10);
  const json trace = Draw();
  EXPECT_EQ(Spans(trace).size(), 4u);
  EXPECT_EQ(Spans(trace).back(), "b prefill 10");
}

TEST_F(TimelineTest, WhatWasDroppedLeavesGaps) {
  Settle(9, 50);  // sent before the recording
  Rank(0, 9, 50);
  Change(v1::RequestChange::DECODES, 10, 3);  // whose arrival was dropped
  Change(v1::RequestChange::ENDED, 20, 3);
  Change(v1::RequestChange::ARRIVED, 30, 4);
  Change(v1::RequestChange::ENDED, 20, 4);  // times that go backwards
  Submit(10, 100);
  Rank(0, 10, 100).set_received_at_us(UINT64_MAX);  // a worker may say anything
  Rank(1, 10, 100).set_received_at_us(0);
  response_.set_num_dropped(17);
  const json trace = Draw();
  EXPECT_EQ(trace["otherData"]["dropped_events"], 17);
  EXPECT_EQ(timeline_.num_steps(), 1u);
  EXPECT_EQ(Spans(trace).size(), 4u);
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") {
      EXPECT_GE(event["dur"], 0) << event;
    }
  }
}

TEST_F(TimelineTest, WorkersThatAreLostAreSeenEverywhere) {
  v1::WorkersChange& change = *response_.add_events()->mutable_workers();
  change.set_at_ns(1000);
  change.set_lost(true);
  change.set_epoch(4);
  change.set_reason("rank 1 exited with signal 9");
  const json trace = Draw();
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "i") continue;
    EXPECT_EQ(event["name"], "workers lost");
    EXPECT_EQ(event["s"], "g");
    EXPECT_EQ(event["args"]["reason"], "rank 1 exited with signal 9");
    return;
  }
  ADD_FAILURE() << trace;
}

}  // namespace
}  // namespace tandem::client
