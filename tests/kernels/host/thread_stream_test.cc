#include "kernels/host/thread_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace tandem::kernels::host {
namespace {

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

struct CountTask {
  std::atomic<uint32_t>* counts;  // (tasks)
};
void Count(const CountTask& task, const TaskContext& context) { ++task.counts[context.task]; }

class ThreadStreamTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadStreamTest, testing::Values(1, 2, 3, 8));

absl::Status RunList(ThreadStream& stream, const OpList& list, Deadline deadline = Soon()) {
  stream.Start(list, {}, deadline);
  return stream.Wait();
}

TEST_P(ThreadStreamTest, RunsEveryTaskOnce) {
  ThreadStream stream(GetParam());
  OpList list(GetParam());
  for (const uint32_t tasks : {0u, 1u, 2u, 7u, 1000u}) {
    std::vector<std::atomic<uint32_t>> counts(tasks);
    list.Clear(EncodeMode::kRun);
    list.Add("count", tasks, &Count, CountTask{counts.data()});
    ASSERT_TRUE(RunList(stream, list).ok());
    for (const auto& count : counts) EXPECT_EQ(count, 1u);
  }
}

struct CpusTask {
  CpuSet* cpus;  // (threads)
};
void NoteCpus(const CpusTask& task, const TaskContext& context) {
  task.cpus[context.thread] = UsableCpus();
}

// Of all threads of this process.
std::multiset<std::string> CpusOfThreads() {
  std::multiset<std::string> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(thread.path() / "status");
    const std::string name = "Cpus_allowed_list:\t";
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(name)) all.insert(line.substr(name.size()));
    }
  }
  return all;
}

// Before it runs anything.
TEST(ThreadStreamCpusTest, ThreadsAreOnTheirCpusOnceItIsMade) {
  const CpuSet all = UsableCpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  {
    const ThreadStream stream(2, {all[1], all[0]});
    const auto found = CpusOfThreads();
    EXPECT_TRUE(found.contains(CpuSetText({all[0]})));
    EXPECT_TRUE(found.contains(CpuSetText({all[1]})));
  }
  ASSERT_TRUE(RestrictThread(all).ok());
}

TEST(ThreadStreamCpusTest, EachThreadRunsOnItsOwn) {
  const CpuSet all = UsableCpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const CpuSet cpus = {all[1], all[0]};
  ThreadStream stream(2, cpus);
  OpList list(2);
  std::vector<CpuSet> found(2);
  // Until both threads have had a task: the helper may wake when the caller has run all.
  const Deadline patience = Soon();
  while (found[1].empty()) {
    ASSERT_FALSE(patience.Passed());
    list.Clear(EncodeMode::kRun);
    list.Add("cpus", 1000, &NoteCpus, CpusTask{found.data()});
    ASSERT_TRUE(RunList(stream, list).ok());
  }
  EXPECT_EQ(found[0], CpuSet{all[1]});
  EXPECT_EQ(found[1], CpuSet{all[0]});
  ASSERT_TRUE(RestrictThread(all).ok());
}

// Plain memory on purpose: every entry reads what all tasks of the one before wrote.
struct StageTask {
  uint32_t* from;
  uint32_t* to;
  uint32_t tasks;
};
void Stage(const StageTask& stage, const TaskContext& context) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < stage.tasks; ++i) sum += stage.from[i];
  stage.to[context.task] = sum / stage.tasks + 1;
}

TEST_P(ThreadStreamTest, EntriesRunInOrderOverManySteps) {
  constexpr uint32_t kTasks = 6, kEntries = 301;
  ThreadStream stream(GetParam());
  OpList list(GetParam());
  std::vector<uint32_t> a(kTasks, 0), b(kTasks, 0);
  for (uint32_t step = 1; step <= 50; ++step) {
    list.Clear(EncodeMode::kRun);
    for (uint32_t i = 0; i < kEntries; ++i) {
      list.Add(
          "stage", kTasks, &Stage,
          StageTask{i % 2 == 0 ? a.data() : b.data(), i % 2 == 0 ? b.data() : a.data(), kTasks});
    }
    ASSERT_TRUE(RunList(stream, list).ok());
    ASSERT_EQ(b, std::vector<uint32_t>(kTasks, step * kEntries));
    a.swap(b);
  }
}

TEST_P(ThreadStreamTest, ScratchBelongsToTheThread) {
  ThreadStream stream(GetParam());
  OpList list(GetParam());
  constexpr size_t kStride = 64;
  std::vector<std::byte> shared(64), own(GetParam() * kStride);
  struct Task {
    std::byte* shared;
    std::byte* own;
    std::atomic<int>* wrong;
  };
  std::atomic<int> wrong{0};
  list.Clear(EncodeMode::kRun);
  list.Add(
      "scratch", 500,
      +[](const Task& task, const TaskContext& context) {
        if (context.shared_scratch != task.shared ||
            context.thread_scratch != task.own + context.thread * kStride)
          ++*task.wrong;
        // A race if two threads shared it.
        context.thread_scratch[0] = static_cast<std::byte>(context.task);
        if (context.thread_scratch[0] != static_cast<std::byte>(context.task)) ++*task.wrong;
      },
      Task{shared.data(), own.data(), &wrong});
  stream.Start(list, {shared.data(), own.data(), kStride}, Soon());
  ASSERT_TRUE(stream.Wait().ok());
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadStreamTest, OnlyTheFirstErrorComesBackAndNothingRunsAfterIt) {
  ThreadStream stream(GetParam());
  OpList list(GetParam());
  std::vector<std::atomic<uint32_t>> counts(5);
  list.Clear(EncodeMode::kRun);
  list.Add("count", 5, &Count, CountTask{counts.data()});
  list.AddWork("work", [](Deadline) { return absl::AbortedError("first"); });
  list.AddWork("work", [](Deadline) { return absl::AbortedError("second"); });
  list.Add("count", 5, &Count, CountTask{counts.data()});
  EXPECT_EQ(RunList(stream, list), absl::AbortedError("first"));
  for (const auto& count : counts) EXPECT_EQ(count, 1u);
  list.Clear(EncodeMode::kRun);
  list.Add("count", 5, &Count, CountTask{counts.data()});
  EXPECT_TRUE(RunList(stream, list).ok());
  for (const auto& count : counts) EXPECT_EQ(count, 2u);
}

// A task that outlives the deadline: Wait reports it, yet returns only when no thread uses the list
// any more.
TEST_P(ThreadStreamTest, AWaitEndsAfterTheTasksThatRan) {
  ThreadStream stream(GetParam());
  OpList list(GetParam());
  struct Task {
    const Deadline* deadline;
    std::atomic<uint32_t>* ended;
  };
  std::atomic<uint32_t> ended{0}, later{0};
  // With more time while the deadline passes before a task begins.
  for (auto time = std::chrono::milliseconds(2); ended == 0 && time < std::chrono::minutes(1);
       time *= 2) {
    const Deadline deadline = Deadline::After(time);
    list.Clear(EncodeMode::kRun);
    list.Add(
        "slow", GetParam(),
        +[](const Task& task, const TaskContext&) {
          while (!task.deadline->Passed()) {
          }
          ++*task.ended;
        },
        Task{&deadline, &ended});
    list.Add("later", 1, &Count, CountTask{&later});
    EXPECT_EQ(RunList(stream, list, deadline).code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_GE(ended, 1u);
  EXPECT_EQ(later, 0u);
}

TEST_P(ThreadStreamTest, HelpersParkBetweenSteps) {
  ThreadStream stream(GetParam());
  OpList list(GetParam());
  std::vector<std::atomic<uint32_t>> counts(64);
  for (uint32_t step = 1; step <= 5; ++step) {
    // Longer than any spinning: helpers must come back from where they parked, or be done without.
    const Deadline pause = Deadline::After(std::chrono::milliseconds(3));
    while (!pause.Passed()) {
    }
    list.Clear(EncodeMode::kRun);
    list.Add("count", 64, &Count, CountTask{counts.data()});
    ASSERT_TRUE(RunList(stream, list).ok());
    for (const auto& count : counts) ASSERT_EQ(count, step);
  }
}

TEST(OpListTest, APlanPassOnlyCountsScratch) {
  OpList list(2);
  std::atomic<uint32_t> count{0};
  list.Clear(EncodeMode::kPlan);
  list.ReserveScratch(100, 1);
  list.Add("count", 1, &Count, CountTask{&count});
  list.AddWork("work", [](Deadline) { return absl::OkStatus(); });
  list.ReserveScratch(10, 65);
  EXPECT_TRUE(list.entries().empty());
  EXPECT_EQ(list.scratch().shared, 128u);
  EXPECT_EQ(list.scratch().per_thread, 128u);
  list.Clear(EncodeMode::kRun);
  EXPECT_EQ(list.scratch().shared, 0u);
}

}  // namespace
}  // namespace tandem::kernels::host
