// Workers of a server with many streams are killed and stopped, at progress drawn from a seed,
// also while lost ones are replaced: no request fails, and every answer is that of an undisturbed
// run. Prints how long streams paused.
//
// Sizes come from the environment, for a long run:
//   bazel test //tests/cluster/loss:chaos_test --test_output=all
//   --test_env=TANDEM_CHAOS_STREAMS=200
//       --test_env=TANDEM_CHAOS_LOSSES=20 --test_env=TANDEM_CHAOS_SEED=1
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cluster/loss/chaos_streams.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

constexpr auto kPatience = std::chrono::minutes(5);

int Setting(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoi(value);
}

// Prompts that share nothing, so that the prefix cache, whose hits are counted in the usage, does
// not depend on the order of steps.
std::vector<v1::GenerateRequest> MakeRequests(int count) {
  std::vector<v1::GenerateRequest> requests(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    v1::GenerateRequest& request = requests[static_cast<size_t>(i)];
    for (int t = 0; t < 4 + i % 40; ++t) {
      request.mutable_token_ids()->add_ids(20 + (t == 0 ? i : (i * 7 + t * 13) % 1500));
    }
    v1::SamplingParams& sampling = *request.mutable_sampling();
    sampling.set_temperature(static_cast<float>(i % 4) * 0.4f);
    sampling.set_seed(static_cast<uint64_t>(i));
    sampling.set_max_tokens(64 + i * 37 % 193);
    sampling.set_ignore_eos(true);
    sampling.set_logprobs(i % 3);
  }
  return requests;
}

size_t TokensOf(const std::vector<v1::GenerateRequest>& requests) {
  size_t sum = 0;
  for (const auto& request : requests) {
    sum += static_cast<size_t>(request.sampling().max_tokens());
  }
  return sum;
}

// When a loss comes: while tokens flow, or after a kill, when the new process is there or connects.
enum class Moment { kServing, kStarting, kLoading };

struct Loss {
  Moment moment;
  int signal;
  int rank;
  TimePoint begin{};  // of the first signal
};

std::string Name(const Loss& loss) {
  return absl::StrCat(loss.moment == Moment::kServing    ? ""
                      : loss.moment == Moment::kStarting ? "SIGKILL, while starting "
                                                         : "SIGKILL, while loading ",
                      loss.signal == SIGKILL ? "SIGKILL" : "SIGSTOP", " rank ", loss.rank);
}

int64_t Millis(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// A loopback address on which a server may listen. No other socket gets it by chance.
class ReservedAddress {
 public:
  ReservedAddress() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    text_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ReservedAddress(const ReservedAddress&) = delete;
  ReservedAddress& operator=(const ReservedAddress&) = delete;
  ~ReservedAddress() { close(fd_); }

  const std::string& text() const { return text_; }

 private:
  const int fd_;
  std::string text_;
};

// Workers that the coordinator starts, on either transport, or "external" ones, which exchange by
// TCP: then the test starts them, and others in place of those that it ends.
class ChaosTest : public ::testing::TestWithParam<std::string> {
 protected:
  static bool external() { return GetParam() == "external"; }

  void StartServer() {
    external_.clear();
    server_.reset();
    std::vector<std::string> flags = {"--tensor-parallel-size", "2", "--threads-per-worker", "1"};
    flags.insert(flags.end(), {"--max-num-seqs", "200", "--max-model-len", "512"});
    flags.insert(flags.end(), {"--num-kv-blocks", "8192", "--step-timeout", "2"});
    flags.insert(flags.end(),
                 {"--max-restarts", "1000", "--step-transport", external() ? "grpc" : GetParam()});
    flags.insert(flags.end(), {"--collective-transport", external() ? "tcp" : "auto"});
    if (external()) {
      std::ofstream(token_file_) << "a token\n";
      flags.insert(flags.end(), {"--workers", "external", "--worker-listen", worker_address_.text(),
                                 "--worker-token-file", token_file_});
      for (int rank = 0; rank < 2; ++rank) external_.push_back(StartWorker(rank));
    }
    server_ = TestServer::Start("models/demo.gguf", flags);
    ASSERT_NE(server_, nullptr);
  }
  std::unique_ptr<Program> StartWorker(int rank) const {
    return Program::Start({kWorker, "--coordinator", worker_address_.text(), "--token-file",
                           token_file_, "--rank", std::to_string(rank)});
  }

  // The process of a rank, when it runs and is not `other`.
  pid_t WorkerOf(int rank, pid_t other) const {
    if (external()) return external_[static_cast<size_t>(rank)]->pid();
    const Deadline deadline = Deadline::After(kPatience);
    while (!deadline.Passed()) {
      for (const pid_t pid : server_->workers()) {
        const std::string flags = ReadProcFile(absl::StrCat("/proc/", pid, "/cmdline"));
        if (pid == other || !IsRunning(pid)) continue;
        const std::string wanted = absl::StrCat("--rank", std::string(1, '\0'), rank);
        if (flags.find(wanted) != std::string::npos) return pid;
      }
    }
    ADD_FAILURE() << "no worker of rank " << rank;
    return 0;
  }

  int64_t Restarts() const { return server_->Stat("tandem_restarts_total"); }
  // Waits until workers run again.
  void AwaitRepair(int64_t restarts) {
    const Deadline deadline = Deadline::After(kPatience);
    while (Restarts() <= restarts) {
      ASSERT_FALSE(deadline.Passed()) << server_->program().Stderr();
      // One that came before its rank was free.
      for (size_t rank = 0; rank < external_.size(); ++rank) {
        if (external_[rank]->WaitExit(Deadline::At(TimePoint()))) {
          external_[rank] = StartWorker(static_cast<int>(rank));
        }
      }
    }
  }

  void Inflict(Loss& loss) {
    const pid_t first = WorkerOf(loss.rank, 0);
    loss.begin = Clock::System().Now();
    ASSERT_NO_FATAL_FAILURE(
        Signal(loss.rank, first, loss.moment == Moment::kServing ? loss.signal : SIGKILL));
    if (loss.moment == Moment::kServing) return;
    const pid_t second = WorkerOf(loss.rank, first);
    int rank = loss.rank;
    if (loss.moment == Moment::kLoading) {
      const std::string connected = absl::StrCat("rank ", rank, " connected: pid ", second);
      ASSERT_TRUE(server_->program().WaitStderr(connected, Deadline::After(kPatience)));
      // Either the new one or the one that kept its weights.
      if (random_() % 2 == 0) rank = 1 - rank;
    }
    const pid_t again = rank == loss.rank ? second : WorkerOf(rank, 0);
    ASSERT_NO_FATAL_FAILURE(Signal(rank, again, loss.signal));
  }

  void StopWhileIdle() {
    const int64_t restarts = Restarts();
    const TimePoint begin = Clock::System().Now();
    ASSERT_NO_FATAL_FAILURE(Signal(1, WorkerOf(1, 0), SIGSTOP));
    ASSERT_NO_FATAL_FAILURE(AwaitRepair(restarts));
    std::cout << "SIGSTOP while idle: " << Millis(Clock::System().Now() - begin) << " ms\n";
  }

  void Signal(int rank, pid_t pid, int signal) {
    ASSERT_GT(pid, 0);
    kill(pid, signal);
    if (!external()) return;
    auto& worker = external_[static_cast<size_t>(rank)];
    if (signal == SIGKILL) {
      ASSERT_TRUE(worker->WaitExit(Deadline::After(kPatience)).has_value());
    }
    // Until its rank is free, if it had it.
    Program& server = server_->program();
    const auto line = [&](const char* what) {
      return absl::StrCat("rank ", rank, " ", what, ": pid ", pid);
    };
    if (server.Stderr().find(line("connected")) != std::string::npos) {
      ASSERT_TRUE(server.WaitStderr(line("disconnected"), Deadline::After(kPatience)));
    }
    worker = StartWorker(rank);
  }

  std::mt19937 random_{static_cast<uint32_t>(Setting("TANDEM_CHAOS_SEED", 1))};
  std::unique_ptr<TestServer> server_;
  const std::string token_file_ = ::testing::TempDir() + "/token";
  const ReservedAddress worker_address_;
  std::vector<std::unique_ptr<Program>> external_;
};

void Report(const ChaosStreams& streams, const std::vector<Loss>& losses) {
  std::vector<Duration> killed, stopped, twice;
  for (size_t i = 0; i < losses.size(); ++i) {
    const Loss& loss = losses[i];
    const TimePoint end = i + 1 < losses.size() ? losses[i + 1].begin : TimePoint::max();
    const Duration pause = streams.PauseBetween(loss.begin, end);
    auto& list = loss.moment != Moment::kServing ? twice
                 : loss.signal == SIGKILL        ? killed
                                                 : stopped;
    list.push_back(pause);
    std::cout << Name(loss) << ": " << Millis(pause) << " ms\n";
  }
  const auto print = [](const char* name, std::vector<Duration>& pauses) {
    if (pauses.empty()) return;
    std::ranges::sort(pauses);
    std::cout << name << ": " << pauses.size() << ", median " << Millis(pauses[pauses.size() / 2])
              << " ms, worst " << Millis(pauses.back()) << " ms\n";
  };
  print("SIGKILL", killed);
  print("SIGSTOP", stopped);
  print("again before it was repaired", twice);
}

TEST_P(ChaosTest, NoRequestFailsAndEveryAnswerIsThatOfAnUndisturbedRun) {
  const int num_losses = Setting("TANDEM_CHAOS_LOSSES", 5);
  const auto requests = MakeRequests(Setting("TANDEM_CHAOS_STREAMS", 24));
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const std::vector<std::string> undisturbed = ChaosStreams(server_->address(), requests).Answers();
  for (const std::string& answer : undisturbed) ASSERT_FALSE(answer.starts_with("failed"));

  ASSERT_NO_FATAL_FAILURE(StartServer());
  ChaosStreams streams(server_->address(), requests);
  const size_t step = TokensOf(requests) / static_cast<size_t>(num_losses + 1);
  std::vector<Loss> losses;
  for (int i = 0; i < num_losses; ++i) {
    Loss loss{.moment = i % 5 == 2   ? Moment::kStarting
                        : i % 5 == 4 ? Moment::kLoading
                                     : Moment::kServing,
              .signal = i % 2 == 0 ? SIGKILL : SIGSTOP,
              .rank = static_cast<int>(random_() % 2)};
    // An external worker that is stopped before it has connected is nothing to the server.
    if (external() && loss.moment == Moment::kStarting) loss.signal = SIGKILL;
    const size_t tokens = static_cast<size_t>(i) * step + 1 + random_() % step;
    ASSERT_TRUE(streams.WaitTokens(tokens, Deadline::After(kPatience)))
        << server_->program().Stderr();
    const int64_t restarts = Restarts();
    ASSERT_GE(restarts, 0) << server_->program().Stderr();
    ASSERT_NO_FATAL_FAILURE(Inflict(loss));
    ASSERT_NO_FATAL_FAILURE(AwaitRepair(restarts));
    // One token of the new workers, unless all streams have ended. Every loss of an external worker
    // is a strike, of which a third in a row ends a request: so one of each stream.
    streams.WaitTokens(streams.num_tokens() + 1, Deadline::After(kPatience));
    const bool went_on = !external() || streams.WaitTokenOfEach(Deadline::After(kPatience));
    ASSERT_TRUE(went_on) << server_->program().Stderr();
    losses.push_back(loss);
  }
  const std::vector<std::string> answers = streams.Answers();
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(answers[i] == undisturbed[i])
        << "request " << i << (answers[i].starts_with("failed") ? " " + answers[i] : " differs");
  }
  const auto stats = server_->Stats();
  EXPECT_EQ(stats["tandem_kv_blocks_free"], stats["tandem_kv_blocks"]);
  EXPECT_GT(stats["tandem_epoch"], num_losses);
  Report(streams, losses);
  ASSERT_NO_FATAL_FAILURE(StopWhileIdle());
  Program& program = server_->program();
  program.Signal(SIGTERM);
  EXPECT_EQ(program.WaitExit(Deadline::After(kPatience)), 0);
  // Of its processes: what a build with sanitizers finds.
  EXPECT_EQ(program.Stderr().find("Sanitizer"), std::string::npos);
  if (HasFailure()) std::cout << program.Stderr();
}

INSTANTIATE_TEST_SUITE_P(Transports, ChaosTest, ::testing::Values("shm", "grpc", "external"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace tandem::testing
