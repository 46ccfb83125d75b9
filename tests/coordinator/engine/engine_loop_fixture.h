// EngineLoop over simulated workers, held at chosen points of a step.
#ifndef TANDEM_TESTS_COORDINATOR_ENGINE_ENGINE_LOOP_FIXTURE_H_
#define TANDEM_TESTS_COORDINATOR_ENGINE_ENGINE_LOOP_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/engine/engine_loop.h"
#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {

using Stream = std::shared_ptr<RecordingStream>;

// Holds the engine's thread in a step until opened: a state of the engine that stays while the test
// looks at it.
class Gate {
 public:
  // A Pass waits from now on, but for the first `num_free`.
  void Close(int num_free = 0) {
    std::lock_guard lock(mutex_);
    open_ = false;
    num_free_ = num_free;
    waiting_ = 0;
  }
  void Open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    if (num_free_-- > 0) return;
    ++waiting_;
    changed_.notify_all();
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] { return open_; }));
  }
  // Waits until the engine is blocked at the gate.
  void AwaitArrival() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] { return waiting_ > 0; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int num_free_ = 0;
  int waiting_ = 0;
};

// Notified of a lost worker.
class LossListener {
 public:
  EngineLoop::LostFn fn() {
    return [this](const absl::Status& status) {
      std::lock_guard lock(mutex_);
      message_ = std::string(status.message());
      ++count_;
      changed_.notify_all();
    };
  }
  // What was lost; empty when nothing was within a minute.
  std::string Await() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [&] { return count_ > 0; });
    return message_;
  }
  int count() const {
    std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string message_;
  int count_ = 0;
};

class EngineLoopTest : public testing::Test {
 protected:
  void Start() {
    engine_.scripts.resize(static_cast<size_t>(engine_.ranks));
    engine_.scripts[0].on_collect = [this] { gate_.Pass(); };
    loop_ = std::make_unique<EngineLoop>(engine_.Make(&workers_), loss_.fn(), recover_,
                                         EngineLoop::kNumWriters, *engine_.clock);
  }

  Stream Add(const std::string& id, uint32_t max_tokens = 10) {
    auto stream = std::make_shared<RecordingStream>();
    const auto handle = loop_->Add(MakeRequest(id, 9, max_tokens, stream));
    EXPECT_TRUE(handle.ok()) << handle.status();
    if (handle.ok()) handles_[id] = *handle;
    return stream;
  }
  absl::Status AddStatus(const std::string& id) {
    return loop_->Add(MakeRequest(id, 9, 10, std::make_shared<RecordingStream>())).status();
  }
  absl::StatusCode AddCode(const std::string& id) { return AddStatus(id).code(); }
  // The request that had this id last.
  void Cancel(const std::string& id) { loop_->Cancel(handles_.at(id)); }
  // A request that holds the engine in the step that draws its first token until `gate_` opens.
  Stream AddHeld(const std::string& id) {
    gate_.Close();
    Stream stream = Add(id);
    gate_.AwaitArrival();
    return stream;
  }
  void ExpectAllFree() {
    const EngineStats stats = loop_->Stats();
    EXPECT_EQ(stats.free_blocks, stats.total_blocks);
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.waiting, 0);
  }

  SimulatedEngine engine_ = SimulatedEngine::Small();
  std::vector<SimulatedWorker*> workers_;
  SimulatedClock clock_;  // the engine thread's, where a test wants it
  LossListener loss_;
  EngineLoop::RecoverFn recover_;  // set before Start
  Gate gate_;
  std::map<std::string, RequestHandle> handles_;
  std::unique_ptr<EngineLoop> loop_;  // ends before what it calls
};

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_ENGINE_ENGINE_LOOP_FIXTURE_H_
