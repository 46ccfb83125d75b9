#include "tests/load/sse_parser.h"

#include <gtest/gtest.h>

#include "tests/load/completion_event.h"

namespace tandem::load {
namespace {

using Events = std::vector<std::string>;

Events ParseInPieces(const std::string& bytes, size_t piece) {
  SseParser parser;
  Events events;
  for (size_t i = 0; i < bytes.size(); i += piece) {
    const auto more = parser.Parse(std::string_view(bytes).substr(i, piece));
    EXPECT_TRUE(more.ok()) << more.status();
    events.insert(events.end(), more->begin(), more->end());
  }
  return events;
}

TEST(SseParserTest, PiecesMakeNoDifference) {
  const std::string bytes =
      ": ping\n\ndata: {\"a\": 1}\n\nevent: x\r\ndata:b\r\n\r\ndata: c\ndata: d\n\n\n\ndata: cut";
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    EXPECT_EQ(ParseInPieces(bytes, piece), (Events{"{\"a\": 1}", "b", "c\nd"})) << piece;
  }
}

TEST(SseParserTest, AnEndlessEventIsRefused) {
  SseParser parser;
  const std::string piece(SseParser::kMaxEventBytes / 2, 'x');
  EXPECT_TRUE(parser.Parse(piece).ok());
  EXPECT_TRUE(parser.Parse(piece).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(parser.Parse("x").status()));
}

TEST(CompletionEventTest, Reads) {
  const auto token =
      ParseCompletionEvent(R"({"choices": [{"text": "a", "finish_reason": null}], "usage": null})");
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_TRUE(token->has_choice);
  EXPECT_FALSE(token->finished);
  const auto last = ParseCompletionEvent(R"({"choices": [{"text": "", "finish_reason": "stop"}]})");
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE(last->finished);
  const auto usage = ParseCompletionEvent(
      R"({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})");
  ASSERT_TRUE(usage.ok());
  EXPECT_FALSE(usage->has_choice);
  EXPECT_EQ(usage->usage.prompt_tokens, 3u);
  EXPECT_EQ(usage->usage.completion_tokens, 4u);
  const auto done = ParseCompletionEvent("[DONE]");
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done->finished);
}

TEST(CompletionEventTest, SurvivesWhatAServerMaySend) {
  for (const char* data : {"", "x", "[]", "3", "{\"error\": {\"message\": \"full\"}}"}) {
    EXPECT_TRUE(absl::IsInternal(ParseCompletionEvent(data).status())) << data;
  }
  for (const char* data :
       {"{}", "{\"choices\": 3}", "{\"choices\": [5]}", "{\"choices\": [], \"usage\": 3}",
        "{\"usage\": {\"prompt_tokens\": -3, \"completion_tokens\": \"x\"}}"}) {
    const auto event = ParseCompletionEvent(data);
    ASSERT_TRUE(event.ok()) << data;
    EXPECT_FALSE(event->finished) << data;
    EXPECT_EQ(event->usage.prompt_tokens + event->usage.completion_tokens, 0u) << data;
  }
}

TEST(CompletionEventTest, TheBodyAsksForAStreamWithUsage) {
  LoadRequest request;
  request.text = "hi \xff";
  request.output_tokens = 5;
  const std::string text = CompletionBody(request, "m", {.ignore_eos = true, .priority = -7});
  EXPECT_NE(text.find("\"stream\":true"), std::string::npos) << text;
  EXPECT_NE(text.find("\"include_usage\":true"), std::string::npos);
  EXPECT_NE(text.find("\"ignore_eos\":true"), std::string::npos);
  EXPECT_NE(text.find("\"max_tokens\":5"), std::string::npos);
  EXPECT_NE(text.find("\"priority\":-7"), std::string::npos);
  request.token_ids = {1, 2};
  EXPECT_NE(CompletionBody(request, "m", {}).find("\"prompt\":[1,2]"), std::string::npos);
}

TEST(CompletionEventTest, FirstModel) {
  const auto id = FirstModel(R"({"data": [{"id": "a"}, {"id": "b"}]})");
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(*id, "a");
  for (const char* body : {"", "{}", "{\"data\": []}", "{\"data\": [3]}", "{\"data\": [{}]}"}) {
    EXPECT_FALSE(FirstModel(body).ok()) << body;
  }
}

}  // namespace
}  // namespace tandem::load
