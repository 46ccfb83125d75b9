// The client's calls against a small server in this process.
#include "client/generation_run.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/answer_printer.h"
#include "client/health_wait.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::client {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

// Answers a prompt with its text in two messages. At most `room` calls run at once, more are
// refused as RESOURCE_EXHAUSTED, and none is answered before `calls_first` have come. Some prompts
// have a meaning.
class SmallServer : public v1::Generation::Service {
 public:
  SmallServer(int room, int calls_first) : room_(room), calls_first_(calls_first) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~SmallServer() override { server_->Shutdown(); }

  const std::string& address() const { return address_; }
  grpc::Server& server() { return *server_; }
  int num_calls() const {
    std::lock_guard lock(mutex_);
    return num_calls_;
  }

  grpc::Status Generate(grpc::ServerContext*, const v1::GenerateRequest* request,
                        grpc::ServerWriter<v1::GenerateResponse>* writer) override {
    {
      std::unique_lock lock(mutex_);
      ++num_calls_;
      changed_.notify_all();
      if (running_ == room_) return {grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full"};
      ++running_;
      Deadline::After(kPatience).Wait(changed_, lock, [&] { return num_calls_ >= calls_first_; });
    }
    const grpc::Status status = Answer(request->text(), *writer);
    // As in the engine, capacity is freed before the client is notified of the end.
    std::lock_guard lock(mutex_);
    --running_;
    return status;
  }

 private:
  static grpc::Status Answer(const std::string& text,
                             grpc::ServerWriter<v1::GenerateResponse>& writer) {
    if (text == "bad") return {grpc::StatusCode::INVALID_ARGUMENT, "a bad prompt"};
    v1::GenerateResponse response;
    response.set_text(text);
    response.add_token_ids(1);
    writer.Write(response);
    if (text == "cut") return grpc::Status::OK;
    while (text == "endless" && writer.Write(response)) {
    }
    if (text == "late") return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too late"};
    response.set_text("!");
    response.set_finish_reason(v1::FINISH_REASON_LENGTH);
    response.mutable_usage()->set_completion_tokens(2);
    writer.Write(response);
    return grpc::Status::OK;
  }

  const int room_;
  const int calls_first_;
  std::string address_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;    // guarded by mutex_
  int num_calls_ = 0;  // guarded by mutex_
  std::unique_ptr<grpc::Server> server_;
};

// Records its calls; a second end of a prompt fails the test.
class Answers : public GenerationListener {
 public:
  bool OnDelta(size_t index, const v1::GenerateResponse& delta) override {
    answers_[index].Append(delta);
    return true;
  }
  void OnEnd(size_t index, const absl::Status& status) override {
    EXPECT_TRUE(ended_.emplace(index, true).second) << "prompt " << index << " ended twice";
    answers_[index].status = status;
  }
  size_t num_ended() const { return ended_.size(); }
  const Answer& operator[](size_t index) { return answers_[index]; }

 private:
  std::map<size_t, Answer> answers_;
  std::map<size_t, bool> ended_;
};

std::vector<v1::GenerateRequest> Prompts(const std::vector<std::string>& texts) {
  std::vector<v1::GenerateRequest> requests(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) requests[i].set_text(texts[i]);
  return requests;
}

void RunAll(const std::string& address, const std::vector<std::string>& texts, Answers& answers) {
  const auto requests = Prompts(texts);
  GenerationRun run(MakeChannel(address), address, kPatience);
  run.Run(requests, answers);
  EXPECT_EQ(answers.num_ended(), texts.size());
}

TEST(GenerationRun, AllAreInFlightAtOnce) {
  SmallServer server(/*room=*/20, /*calls_first=*/20);  // replies to none before all have arrived
  std::vector<std::string> texts;
  for (int i = 0; i < 20; ++i) texts.push_back(absl::StrCat("prompt ", i));
  Answers answers;
  RunAll(server.address(), texts, answers);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(answers[i].status.ok()) << answers[i].status;
    EXPECT_EQ(answers[i].text, texts[i] + "!");
    EXPECT_EQ(answers[i].finish_reason, v1::FINISH_REASON_LENGTH);
    EXPECT_EQ(answers[i].usage.completion_tokens(), 2);
  }
}

TEST(GenerationRun, WhatAFullQueueRefusesIsTriedAgain) {
  SmallServer server(/*room=*/1, /*calls_first=*/10);  // nine are refused before the first answer
  std::vector<std::string> texts;
  for (int i = 0; i < 10; ++i) texts.push_back(absl::StrCat("prompt ", i));
  Answers answers;
  RunAll(server.address(), texts, answers);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(answers[i].status.ok()) << answers[i].status;
    EXPECT_EQ(answers[i].text, texts[i] + "!") << "and no answer twice";
  }
  EXPECT_GE(server.num_calls(), 19);
}

TEST(GenerationRun, ARefusalThatNothingCanHealIsAnError) {
  SmallServer server(/*room=*/0, /*calls_first=*/0);
  Answers answers;
  RunAll(server.address(), {"a", "b", "c"}, answers);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answers[i].status, absl::ResourceExhaustedError("the queue is full"));
  }
}

TEST(GenerationRun, ExhaustionAfterATokenIsNotTriedAgain) {
  SmallServer server(/*room=*/2, /*calls_first=*/2);
  Answers answers;
  RunAll(server.address(), {"late", "good"}, answers);
  EXPECT_EQ(answers[0].status, absl::ResourceExhaustedError("too late"));
  EXPECT_EQ(answers[1].text, "good!");
  EXPECT_EQ(server.num_calls(), 2);
}

TEST(GenerationRun, OneFailureDoesNotDisturbTheOthers) {
  SmallServer server(/*room=*/9, /*calls_first=*/0);
  Answers answers;
  RunAll(server.address(), {"a", "bad", "b", "cut"}, answers);
  EXPECT_EQ(answers[0].text, "a!");
  EXPECT_EQ(answers[1].status, absl::InvalidArgumentError("a bad prompt"));
  EXPECT_EQ(answers[2].text, "b!");
  EXPECT_TRUE(absl::IsInternal(answers[3].status)) << "a stream without its last message";
}

TEST(GenerationRun, WithoutAServerEveryPromptFailsAndNamesIt) {
  std::string address;
  {
    SmallServer server(1, 0);
    address = server.address();
  }
  Answers answers;
  RunAll(address, {"a", "b"}, answers);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(answers[i].status)) << answers[i].status;
    EXPECT_EQ(std::string(answers[i].status.message()).rfind(address, 0), 0u);
  }
}

TEST(HealthWait, ReturnsOnceItServes) {
  SmallServer server(1, 0);
  const auto channel = MakeChannel(server.address());
  EXPECT_TRUE(WaitUntilServing(channel, server.address(), "", kPatience).ok());
}

TEST(HealthWait, GivesUpWithTheLastStatus) {
  SmallServer server(1, 0);
  server.server().GetHealthCheckService()->SetServingStatus(false);
  const auto channel = MakeChannel(server.address());
  const absl::Status status =
      WaitUntilServing(channel, server.address(), "", std::chrono::milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(std::string(status.message()).find("300ms"), std::string::npos) << status;
}

TEST(GenerationRun, EndsOnceNoAnswerIsWanted) {
  class Unwanted : public Answers {
   public:
    bool OnDelta(size_t, const v1::GenerateResponse&) override { return false; }
  };
  SmallServer server(/*room=*/2, /*calls_first=*/1);
  Unwanted answers;
  RunAll(server.address(), {"endless", "endless"}, answers);
  EXPECT_TRUE(absl::IsCancelled(answers[0].status)) << answers[0].status;
}

}  // namespace
}  // namespace tandem::client
