// What ends a worker's waits: its control stream against the coordinator's end of it.
#include "worker/control/control_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "coordinator/cluster/worker_service.h"

namespace tandem::worker {
namespace {

constexpr Epoch kEpoch{3};

Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }

v1::CoordinatorMessage Abort(Epoch epoch, const std::string& reason) {
  v1::CoordinatorMessage message;
  message.mutable_abort()->set_epoch(epoch.value);
  message.mutable_abort()->set_reason(reason);
  return message;
}

v1::CoordinatorMessage Load() {
  v1::CoordinatorMessage message;
  message.mutable_load()->set_epoch(kEpoch.value);
  return message;
}

class ControlStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto service =
        coordinator::WorkerService::Start({.listen = "127.0.0.1:0", .token = "t", .size = 1});
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    service_->registry().rendezvous().SetEpoch(kEpoch);
    auto stream = ControlStream::Dial(
        service_->address(), {.rank = {}, .token = "t", .host_id = "h", .device = "d"}, Long());
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
    ASSERT_TRUE(service_->registry().WaitAll(Long()));
    link_ = service_->registry().links()[0];
  }

  void Send(v1::CoordinatorMessage message) {
    const absl::Status sent = link_->Send(std::move(message));
    ASSERT_TRUE(sent.ok()) << sent;
  }
  // Until all that was sent before is taken.
  void Settle() {
    Send(Load());
    const auto command = stream_->NextCommand(Long());
    ASSERT_TRUE(command.has_value() && std::holds_alternative<LoadCommand>(*command));
  }

  std::unique_ptr<coordinator::WorkerService> service_;
  std::unique_ptr<ControlStream> stream_;
  std::shared_ptr<coordinator::WorkerLink> link_;
};

// The main thread takes no commands meanwhile.
TEST_F(ControlStreamTest, AnswersPingsWhateverTheWorkerDoes) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(link_->Ping().ok());
    EXPECT_TRUE(link_->WaitPong(Long()));
  }
}

TEST_F(ControlStreamTest, AnAbortEndsAGetThatWaits) {
  absl::Status status;
  std::thread waiter(
      [&] { status = stream_->MakeRendezvous(kEpoch)->Get("never", Long()).status(); });
  Send(Abort(kEpoch, "rank 1 was lost"));
  waiter.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_NE(status.message().find("rank 1 was lost"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("'never'"), absl::string_view::npos) << status;
}

TEST_F(ControlStreamTest, AnAbortThatCameBeforeEndsAGetAtOnce) {
  Send(Abort(kEpoch, "rank 1 was lost"));
  Settle();
  EXPECT_EQ(stream_->MakeRendezvous(kEpoch)->Get("never", Long()).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(stream_->CheckEpoch(kEpoch), absl::AbortedError("rank 1 was lost"));
}

TEST_F(ControlStreamTest, AnAbortOfAnEarlierEpochDoesNotAffectThisOne) {
  Send(Abort(Epoch{kEpoch.value - 1}, "of the epoch before"));
  Settle();
  EXPECT_TRUE(stream_->CheckEpoch(kEpoch).ok());
  EXPECT_FALSE(stream_->CheckEpoch(Epoch{kEpoch.value - 1}).ok());
  const auto rendezvous = stream_->MakeRendezvous(kEpoch);
  ASSERT_TRUE(rendezvous->Put("key", "value").ok());
  EXPECT_EQ(*rendezvous->Get("key", Long()), "value");
}

TEST_F(ControlStreamTest, ConfigureEndsWhatIsBeforeItsEpoch) {
  int told = 0;
  stream_->OnEpochEnded([&] { ++told; });
  v1::CoordinatorMessage message;
  message.mutable_configure()->set_epoch(kEpoch.value + 1);
  Send(std::move(message));
  ASSERT_TRUE(stream_->NextCommand(Long()).has_value());
  stream_->OnEpochEnded(nullptr);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(stream_->CheckEpoch(kEpoch).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(stream_->CheckEpoch(Epoch{kEpoch.value + 1}).ok());
}

TEST_F(ControlStreamTest, ShutdownGoesBeforeWhatWaitsAndEndsEveryEpoch) {
  std::thread waiter([&] {
    EXPECT_EQ(stream_->MakeRendezvous(kEpoch)->Get("never", Long()).status().code(),
              absl::StatusCode::kCancelled);
  });
  Send(Load());
  v1::CoordinatorMessage message;
  message.mutable_shutdown();
  Send(std::move(message));
  waiter.join();  // so it has arrived
  const auto command = stream_->NextCommand(Long());
  ASSERT_TRUE(command.has_value());
  ASSERT_TRUE(std::holds_alternative<StopCommand>(*command));
  EXPECT_TRUE(std::get<StopCommand>(*command).reason.ok());
}

TEST_F(ControlStreamTest, AShutdownAfterAnErrorIsOne) {
  link_->AskToExit(absl::UnavailableError("rank 1 is lost"));
  const auto command = stream_->NextCommand(Long());
  ASSERT_TRUE(command.has_value() && std::holds_alternative<StopCommand>(*command));
  EXPECT_EQ(std::get<StopCommand>(*command).reason, absl::UnavailableError("rank 1 is lost"));
}

// Else the worker would read nothing any more, and both ends wait.
TEST_F(ControlStreamTest, AMessageThatCannotBeParsedEndsTheStream) {
  v1::CoordinatorMessage message;
  message.mutable_configure()->set_cpus("\xff");  // no UTF-8
  Send(std::move(message));
  const auto command = stream_->NextCommand(Long());
  ASSERT_TRUE(command.has_value() && std::holds_alternative<StopCommand>(*command));
  EXPECT_FALSE(std::get<StopCommand>(*command).reason.ok());
}

TEST_F(ControlStreamTest, APathMayHaveAnyBytes) {
  v1::CoordinatorMessage message;
  v1::Setting& setting = *message.mutable_configure()->add_settings();
  setting.set_name("model");
  setting.set_value("mod\xe9le.gguf");
  Send(std::move(message));
  const auto command = stream_->NextCommand(Long());
  ASSERT_TRUE(command.has_value());
  EXPECT_TRUE(std::holds_alternative<ConfigureCommand>(*command));
}

}  // namespace
}  // namespace tandem::worker
