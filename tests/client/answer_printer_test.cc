#include "client/answer_printer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "client/json_forms.h"

namespace tandem::client {
namespace {

v1::GenerateResponse Delta(const std::string& text, std::vector<int32_t> ids,
                           v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED) {
  v1::GenerateResponse response;
  response.set_text(text);
  response.mutable_token_ids()->Add(ids.begin(), ids.end());
  response.set_finish_reason(reason);
  if (reason != v1::FINISH_REASON_UNSPECIFIED) {
    response.mutable_usage()->set_prompt_tokens(4);
    response.mutable_usage()->set_completion_tokens(static_cast<int32_t>(ids.size()));
    response.mutable_usage()->set_cached_tokens(1);
  }
  return response;
}

TEST(AnswerJson, HasTheFieldsInOneLine) {
  Answer answer;
  answer.Append(Delta("a\n", {1, 2}));
  answer.Append(Delta("\u00e4", {3}, v1::FINISH_REASON_LENGTH));
  EXPECT_EQ(ToJson(answer),
            "{\"text\":\"a\\n\u00e4\",\"token_ids\":[1,2,3],\"finish_reason\":\"length\","
            "\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":1,\"cached_tokens\":1}}");
}

TEST(AnswerJson, SaysWhatEndedIt) {
  v1::GenerateResponse end = Delta("a", {1}, v1::FINISH_REASON_STOP);
  end.set_matched_stop_string("\n");
  Answer at_string;
  at_string.Append(end);
  EXPECT_EQ(nlohmann::json::parse(ToJson(at_string))["matched_stop"], "\n");
  end.set_matched_stop_token_id(0);
  Answer at_id;
  at_id.Append(end);
  EXPECT_EQ(nlohmann::json::parse(ToJson(at_id))["matched_stop"], 0);
}

void Set(v1::TokenLogprobs& out, int32_t id, float logprob, int32_t rank) {
  out.set_token_id(id);
  out.set_logprob(logprob);
  out.set_rank(rank);
}

TEST(AnswerJson, HasLogprobsWhereTheyCame) {
  v1::GenerateResponse first = Delta("a", {1});
  first.add_prompt_logprobs();
  Set(*first.add_prompt_logprobs(), 8, -1.5f, 2);
  Set(*first.add_logprobs(), 1, -0.25f, 1);
  v1::TopLogprob& top = *first.mutable_logprobs(0)->add_top();
  top.set_token_id(1);
  top.set_logprob(-0.25f);
  top.set_rank(1);
  v1::GenerateResponse second = Delta("b", {2}, v1::FINISH_REASON_LENGTH);
  Set(*second.add_logprobs(), 2, -std::numeric_limits<float>::infinity(), 7);
  Answer answer;
  answer.Append(first);
  answer.Append(second);
  const auto json = nlohmann::json::parse(ToJson(answer));
  EXPECT_EQ(json["prompt_logprobs"].dump(),
            R"([null,{"logprob":-1.5,"rank":2,"token_id":8,"top":[]}])");
  EXPECT_EQ(json["logprobs"].dump(), R"([{"logprob":-0.25,"rank":1,"token_id":1,)"
                                     R"("top":[{"logprob":-0.25,"rank":1,"token_id":1}]},)"
                                     R"({"logprob":null,"rank":7,"token_id":2,"top":[]}])");
}

TEST(AnswerJson, NamesEveryReason) {
  for (const auto& [reason, name] :
       {std::pair{v1::FINISH_REASON_STOP, "stop"}, std::pair{v1::FINISH_REASON_LENGTH, "length"},
        std::pair{v1::FINISH_REASON_CANCELLED, "cancelled"}}) {
    Answer answer;
    answer.Append(Delta("", {}, reason));
    EXPECT_EQ(nlohmann::json::parse(ToJson(answer))["finish_reason"], name);
  }
}

TEST(AnswerJson, AFailureHasItsErrorAndThePartialAnswer) {
  Answer answer;
  answer.Append(Delta("half", {1}));
  answer.status = absl::UnavailableError("rank 1 is lost");
  const auto json = nlohmann::json::parse(ToJson(answer));
  EXPECT_EQ(json["error"], "rank 1 is lost");
  EXPECT_EQ(json["code"], "UNAVAILABLE");
  EXPECT_EQ(json["text"], "half");
  EXPECT_TRUE(json["finish_reason"].is_null());
  EXPECT_TRUE(json["usage"].is_null());
}

TEST(AnswerPrinter, JsonComesInInputOrderAsSoonAsItCan) {
  std::ostringstream out;
  AnswerPrinter printer(out, AnswerFormat::kJson, {1, 1, 1});
  printer.OnDelta(2, Delta("c", {}, v1::FINISH_REASON_STOP));
  printer.OnEnd(2, absl::OkStatus());
  printer.OnEnd(1, absl::InvalidArgumentError("no"));
  EXPECT_EQ(out.str(), "");
  printer.OnDelta(0, Delta("a", {}, v1::FINISH_REASON_STOP));
  EXPECT_EQ(out.str(), "");
  printer.OnEnd(0, absl::OkStatus());
  std::istringstream lines(out.str());
  std::vector<nlohmann::json> answers;
  for (std::string line; std::getline(lines, line);) {
    answers.push_back(nlohmann::json::parse(line));
  }
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0]["text"], "a");
  EXPECT_EQ(answers[1]["error"], "no");
  EXPECT_EQ(answers[2]["text"], "c");
  EXPECT_EQ(printer.Result(), absl::InvalidArgumentError("no"));
}

TEST(AnswerPrinter, OneTextStreams) {
  std::ostringstream out;
  AnswerPrinter printer(out, AnswerFormat::kText, {1});
  printer.OnDelta(0, Delta("one", {}));
  EXPECT_EQ(out.str(), "one");
  printer.OnDelta(0, Delta(" two", {}, v1::FINISH_REASON_LENGTH));
  EXPECT_EQ(out.str(), "one two");
  printer.OnEnd(0, absl::OkStatus());
  EXPECT_EQ(out.str(), "one two\n");
  EXPECT_TRUE(printer.Result().ok());
}

TEST(AnswerPrinter, SeveralTextsHaveHeadersAndTheForemostStreams) {
  std::ostringstream out;
  AnswerPrinter printer(out, AnswerFormat::kText, {1, 1});
  printer.OnDelta(1, Delta("b", {}));
  printer.OnDelta(0, Delta("a", {}, v1::FINISH_REASON_STOP));
  EXPECT_EQ(out.str(), "== prompt 1 of 2 ==\na");
  printer.OnEnd(0, absl::OkStatus());
  EXPECT_EQ(out.str(), "== prompt 1 of 2 ==\na\n== prompt 2 of 2 ==\nb");
  printer.OnEnd(1, absl::UnavailableError("lost"));
  EXPECT_EQ(out.str(), "== prompt 1 of 2 ==\na\n== prompt 2 of 2 ==\nb\n(failed: lost)\n");
}

v1::GenerateResponse DeltaOf(int index, const std::string& text, v1::FinishReason reason) {
  v1::GenerateResponse delta = Delta(text, {}, reason);
  delta.set_index(index);
  return delta;
}

TEST(AnswerPrinter, ContinuationsAreAnswersOfTheirOwn) {
  std::ostringstream text, json;
  AnswerPrinter as_text(text, AnswerFormat::kText, {2, 1}), as_json(json, AnswerFormat::kJson, {2});
  for (AnswerPrinter* printer : {&as_text, &as_json}) {
    printer->OnDelta(0, DeltaOf(1, "b", v1::FINISH_REASON_STOP));
    printer->OnDelta(0, DeltaOf(0, "a", v1::FINISH_REASON_LENGTH));
    // No server of ours sends it.
    EXPECT_FALSE(printer->OnDelta(0, DeltaOf(2, "c", v1::FINISH_REASON_STOP)));
    EXPECT_FALSE(printer->OnDelta(0, DeltaOf(-1, "c", v1::FINISH_REASON_STOP)));
  }
  EXPECT_EQ(text.str(),
            "== prompt 1 of 2, continuation 1 of 2 ==\na\n"
            "== prompt 1 of 2, continuation 2 of 2 ==\nb\n"
            "== prompt 2 of 2 ==\n");
  std::istringstream lines(json.str());
  for (const char* wanted : {"a", "b"}) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(nlohmann::json::parse(line)["text"], wanted);
    EXPECT_EQ(nlohmann::json::parse(line)["index"], *wanted - 'a');
  }
  as_json.OnEnd(0, absl::OkStatus());
  EXPECT_TRUE(as_json.Result().ok());
}

TEST(AnswerPrinter, AFailureIsOfTheContinuationsThatHadNotEnded) {
  std::ostringstream out;
  AnswerPrinter printer(out, AnswerFormat::kText, {2});
  printer.OnDelta(0, DeltaOf(0, "a", v1::FINISH_REASON_STOP));
  printer.OnEnd(0, absl::UnavailableError("lost"));
  EXPECT_EQ(out.str(), "== continuation 1 of 2 ==\na\n== continuation 2 of 2 ==\n(failed: lost)\n");
  EXPECT_EQ(printer.Result(), absl::UnavailableError("lost"));
}

class FlushCounter : public std::stringbuf {
 public:
  int sync() override {
    ++flushes_;
    return 0;
  }
  int flushes() const { return flushes_; }

 private:
  int flushes_ = 0;
};

TEST(AnswerPrinter, FlushesWhatIsNewOnly) {
  FlushCounter text_counter, json_counter;
  std::ostream text(&text_counter), json(&json_counter);
  AnswerPrinter as_text(text, AnswerFormat::kText, {1, 1});
  AnswerPrinter as_json(json, AnswerFormat::kJson, {1, 1});
  for (AnswerPrinter* printer : {&as_text, &as_json}) {
    printer->OnDelta(1, Delta("b", {}));  // not the foremost
    printer->OnDelta(0, Delta("a", {}));
    printer->OnDelta(0, Delta("", {7}));
    printer->OnDelta(0, Delta("c", {}, v1::FINISH_REASON_STOP));
  }
  EXPECT_EQ(text_counter.flushes(), 2);
  EXPECT_EQ(json_counter.flushes(), 0);
  for (AnswerPrinter* printer : {&as_text, &as_json}) {
    printer->OnEnd(0, absl::OkStatus());
    printer->OnEnd(1, absl::OkStatus());
  }
  EXPECT_EQ(text_counter.flushes(), 5);  // the end of one, the other so far, its end
  EXPECT_EQ(json_counter.flushes(), 2);
}

// A device that takes so many bytes, as a full disk does.
class SmallDevice : public std::stringbuf {
 public:
  explicit SmallDevice(size_t room) : room_(room) {}
  int sync() override { return str().size() <= room_ ? 0 : -1; }

 private:
  const size_t room_;
};

TEST(AnswerPrinter, WhatCannotBeWrittenIsNamed) {
  SmallDevice device(40);  // less than one answer
  std::ostream out(&device);
  AnswerPrinter printer(out, AnswerFormat::kJson, {1, 1, 1});
  EXPECT_TRUE(printer.OnDelta(1, Delta("b", {}, v1::FINISH_REASON_STOP)));
  printer.OnEnd(1, absl::OkStatus());
  EXPECT_TRUE(printer.OnDelta(0, Delta("a", {}, v1::FINISH_REASON_STOP)));
  printer.OnEnd(0, absl::OkStatus());
  EXPECT_FALSE(printer.OnDelta(2, Delta("c", {})));  // no more is wanted
  printer.OnEnd(2, absl::CancelledError("cancelled"));
  const absl::Status result = printer.Result();
  EXPECT_TRUE(absl::IsDataLoss(result)) << result;
  EXPECT_THAT(std::string(result.message()),
              testing::EndsWith(": answers 1 to 3 of 3 are not written"));
}

TEST(AnswerPrinter, ATextThatStopsHalfwayIsAnError) {
  SmallDevice device(3);
  std::ostream out(&device);
  AnswerPrinter printer(out, AnswerFormat::kText, {1});
  EXPECT_TRUE(printer.OnDelta(0, Delta("one", {})));
  EXPECT_FALSE(printer.OnDelta(0, Delta(" two", {})));
  printer.OnEnd(0, absl::CancelledError("cancelled"));
  EXPECT_THAT(std::string(printer.Result().message()),
              testing::EndsWith(": the answer is not written"));
}

}  // namespace
}  // namespace tandem::client
