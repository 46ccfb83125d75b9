// A worker whose device hangs or has failed ends within seconds, with memory, pages and a model on
// it: on the CUDA backend, under emulation, where freeing memory waits for the device as it does on
// a GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "kernels/factory.h"
#include "tests/worker/control/scripted_stream.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "tools/cuda_emulation/runtime.h"
#include "worker/control/worker_main.h"

namespace tandem::worker {
namespace {

// More than giving up a hung stream takes; a process that waits for ever ends by the alarm.
constexpr unsigned kPatience = 60;

ConfigureCommand ConfigureCuda(Epoch epoch) {
  ConfigureCommand command = Configure(epoch, 1);
  command.config.device.device = config::Device::kCuda;
  command.config.transport.step_timeout = std::chrono::milliseconds(100);
  return command;
}

// Loads a model, puts `work` on its stream, and serves what follows.
void Serve(std::function<cudaError_t()> work, std::deque<Command> then) {
  alarm(kPatience);
  kernels::Backend* backend = nullptr;
  kernels::RegisterCuda([&](int) {
    auto made = kernels::cuda::MakeEmulatedBackend();
    if (made.ok()) backend = made->get();
    return made;
  });
  std::deque<Command> commands = {ConfigureCuda(Epoch{1}), LoadCommand{Epoch{1}}};
  commands.insert(commands.end(), then.begin(), then.end());
  auto stream = std::make_unique<ScriptedStream>(std::move(commands));
  stream->on_ready = [&] {
    const auto handle = static_cast<cudaStream_t>(backend->device_stream()->handle());
    ASSERT_EQ(emulation::Enqueue(handle, work), cudaSuccess);
  };
  const absl::Status end = ServeCommands(std::move(stream), {});
  std::fprintf(stderr, "it ends as any other: %s\n", end.ToString().c_str());
  _exit(end.ok() ? 0 : 2);
}

using BrokenDeviceDeathTest = testing::Test;

TEST(BrokenDeviceDeathTest, AWorkerWhoseDeviceHangsLeavesIt) {
  const auto hang = [] { return cudaErrorNotReady; };
  EXPECT_EXIT(Serve(hang, {ConfigureCuda(Epoch{2})}), testing::ExitedWithCode(1),
              "the device takes no more work: the GPU does not finish.*leaving without freeing");
}

TEST(BrokenDeviceDeathTest, AWorkerWhoseKernelFailedLeavesItToo) {
  const auto fail = [] { return cudaErrorLaunchFailure; };
  EXPECT_EXIT(Serve(fail, {ConfigureCuda(Epoch{2})}), testing::ExitedWithCode(1),
              "the device takes no more work: .*cudaErrorLaunchFailure");
}

TEST(BrokenDeviceDeathTest, OneThatIsWellFreesItsMemory) {
  const auto work = [] { return cudaSuccess; };
  EXPECT_EXIT(Serve(work, {ConfigureCuda(Epoch{2}), LoadCommand{Epoch{2}}}),
              testing::ExitedWithCode(0), "it ends as any other: OK");
}

}  // namespace
}  // namespace tandem::worker
