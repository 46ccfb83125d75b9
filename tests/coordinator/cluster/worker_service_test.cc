// Who may join: workers that really dial.
#include "coordinator/cluster/worker_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/step/protocol_version.h"
#include "proto/tandem/v1/worker.grpc.pb.h"
#include "worker/control/control_stream.h"

namespace tandem::coordinator {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kPoll = std::chrono::milliseconds(5);

class WorkerServiceTest : public ::testing::Test {
 protected:
  void StartService(bool one_host) {
    auto service = WorkerService::Start({.token = "t", .size = 2, .one_host = one_host});
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }
  std::unique_ptr<worker::ControlStream> Dial(int rank, const std::string& host_id) {
    auto stream = worker::ControlStream::Dial(
        service_->address(), {.rank = rank, .token = "t", .host_id = host_id, .device = "d"},
        Deadline::After(kPatience));
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *std::move(stream);
  }
  // The bare call, for what a ControlStream does not do.
  auto Connect(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    return v1::WorkerControl::NewStub(
               grpc::CreateChannel(service_->address(), grpc::InsecureChannelCredentials()))
        ->Connect(&context);
  }
  void AwaitFirstRank() {
    while (service_->registry().Missing().size() == 2)
      service_->registry().WaitAll(Deadline::After(kPoll));
  }

  std::unique_ptr<WorkerService> service_;
};

TEST_F(WorkerServiceTest, WorkersThatShareMemoryMustBeOfOneHost) {
  StartService(/*one_host=*/true);
  const auto first = Dial(0, "a");
  AwaitFirstRank();
  const auto second = Dial(1, "b");
  const auto command = second->NextCommand(Deadline::After(kPatience));
  ASSERT_TRUE(command.has_value());
  const auto* stop = std::get_if<worker::StopCommand>(&*command);
  ASSERT_NE(stop, nullptr);
  EXPECT_NE(stop->reason.message().find("host id differs"), absl::string_view::npos)
      << stop->reason;
  EXPECT_EQ(service_->registry().Missing().size(), 1u);
}

TEST_F(WorkerServiceTest, OthersMayBeOfSeveral) {
  StartService(/*one_host=*/false);
  const auto first = Dial(0, "a");
  const auto second = Dial(1, "b");
  EXPECT_TRUE(service_->registry().WaitAll(Deadline::After(kPatience)));
}

TEST_F(WorkerServiceTest, ARankIsFreeAgainWhenItsWorkerHasEnded) {
  StartService(/*one_host=*/true);
  auto first = Dial(0, "a");
  const auto second = Dial(1, "a");
  ASSERT_TRUE(service_->registry().WaitAll(Deadline::After(kPatience)));
  const auto lost = service_->registry().links()[0];
  const auto taken = Dial(0, "a")->NextCommand(Deadline::After(kPatience));
  ASSERT_TRUE(taken.has_value());
  const absl::Status refused = std::get<worker::StopCommand>(*taken).reason;
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused << ": it may be asked for again";
  EXPECT_NE(refused.message().find("rank 0 is taken"), absl::string_view::npos);

  first = nullptr;
  ASSERT_TRUE(service_->registry().WaitReleased(*lost, Deadline::After(kPatience)));
  EXPECT_FALSE(lost->status().ok());
  EXPECT_EQ(service_->registry().Missing(), std::vector<int>{0});
  const auto again = Dial(0, "a");
  ASSERT_TRUE(service_->registry().WaitAll(Deadline::After(kPatience)));
  EXPECT_TRUE(service_->registry().links()[0]->status().ok());
  // The one that was lost has no rank, whether or not another has taken it.
  EXPECT_TRUE(service_->registry().WaitReleased(*lost, Deadline::After(Duration::zero())));
}

TEST_F(WorkerServiceTest, AWorkerThatIsCancelledIsLostAtOnceAndItsRankIsFreeSoon) {
  StartService(/*one_host=*/true);
  const auto first = Dial(0, "a");
  const auto second = Dial(1, "a");
  ASSERT_TRUE(service_->registry().WaitAll(Deadline::After(kPatience)));
  const auto lost = service_->registry().links()[0];
  lost->Cancel();
  EXPECT_EQ(lost->status(), absl::UnavailableError("control connection cancelled"));
  ASSERT_TRUE(service_->registry().WaitReleased(*lost, Deadline::After(kPatience)));
  const auto command = first->NextCommand(Deadline::After(kPatience));
  ASSERT_TRUE(command.has_value());
  EXPECT_TRUE(std::holds_alternative<worker::StopCommand>(*command));
  EXPECT_TRUE(service_->registry().links()[1]->status().ok());
}

// The worker has closed its half and reads nothing, so that a write to it does not end.
TEST_F(WorkerServiceTest, AWorkerThatIsGoingIsLostThoughAWriteIsUnderWay) {
  StartService(/*one_host=*/true);
  grpc::ClientContext context;
  context.AddMetadata(step::kWorkerTokenHeader, "t");
  const auto stream = Connect(context);
  v1::WorkerMessage hello;
  hello.mutable_hello()->set_protocol_version(step::kWorkerProtocolVersion);
  ASSERT_TRUE(stream->Write(hello));
  AwaitFirstRank();
  const auto link = service_->registry().links()[0];
  v1::CoordinatorMessage large;
  large.set_step(std::string(64 << 20, 'x'));
  ASSERT_TRUE(link->Send(large).ok());
  ASSERT_TRUE(stream->WritesDone());
  EXPECT_TRUE(service_->registry().WaitReleased(*link, Deadline::After(kPatience / 2)));
  EXPECT_EQ(link->status(), absl::UnavailableError("control connection lost"));
}

// Else the next epoch would be tried on it, and fail, again and again.
TEST(WorkerLinkTest, AStreamThatTakesNoMessageIsEnded) {
  int cancels = 0;
  WorkerLink link(
      v1::Hello(), [](const auto&) { return absl::UnavailableError("does not read"); },
      [&] { ++cancels; });
  std::vector<absl::Status> ends;
  link.OnClosed([&](const absl::Status& status) { ends.push_back(status); });
  EXPECT_EQ(link.Send({}), absl::UnavailableError("does not read"));
  EXPECT_EQ(link.Send({}), absl::UnavailableError("does not read"));
  EXPECT_EQ(link.status(), absl::UnavailableError("does not read"));
  EXPECT_EQ(cancels, 1);
  EXPECT_EQ(ends.size(), 1u);
}

// 64 MiB of a peer without the token: it is refused before a message of it is read.
TEST_F(WorkerServiceTest, WithoutTheTokenNoMessageIsRead) {
  StartService(/*one_host=*/true);
  grpc::ClientContext context;
  const auto stream = Connect(context);
  v1::WorkerMessage large;
  large.set_step_result(std::string(64 << 20, 'x'));
  EXPECT_FALSE(stream->Write(large) && stream->Write(large)) << "it has been taken in";
  v1::CoordinatorMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.refused().reason(), "worker token does not match");
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(WorkerServiceTest, AWrongTokenIsRefused) {
  StartService(/*one_host=*/true);
  auto stream = worker::ControlStream::Dial(
      service_->address(), {.rank = 0, .token = "T", .host_id = "a", .device = "d"},
      Deadline::After(kPatience));
  ASSERT_TRUE(stream.ok()) << stream.status();
  const auto command = (*stream)->NextCommand(Deadline::After(kPatience));
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(std::get<worker::StopCommand>(*command).reason.message(),
            "worker token does not match");
}

TEST_F(WorkerServiceTest, APortInUseIsSaidWithTheReason) {
  StartService(/*one_host=*/true);
  const auto second = WorkerService::Start({.listen = service_->address(), .token = "t"});
  EXPECT_EQ(second.status().message(), "--worker-listen: cannot listen on " + service_->address() +
                                           ": Address already in use");
}

}  // namespace
}  // namespace tandem::coordinator
