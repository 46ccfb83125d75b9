#include "worker/life/configure_codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "proto/tandem/v1/worker.pb.h"

namespace tandem::worker {
namespace {

v1::Configure Sound() {
  v1::Configure message;
  message.set_epoch(3);
  message.set_rank(1);
  message.set_size(2);
  message.set_threads(1);
  message.set_device("cuda");
  message.set_device_index(5);
  message.set_kv_cache_type("bf16");
  message.set_step_transport("shm");
  message.set_step_timeout_ms(1000);
  message.set_max_model_len(100);
  message.set_gpu_memory_utilization(0.75);
  message.set_enforce_eager(true);
  message.set_strict(true);
  return message;
}

TEST(ConfigureCodecTest, DeviceFieldsArrive) {
  const ConfigureCommand command = FromProto(Sound());
  ASSERT_TRUE(command.invalid.ok()) << command.invalid;
  EXPECT_EQ(command.backend.device, "cuda");
  EXPECT_EQ(command.backend.device_index, 5);
  EXPECT_EQ(command.runner.gpu_memory_utilization, 0.75);
  EXPECT_TRUE(command.runner.enforce_eager);
  EXPECT_TRUE(command.runner.strict);
  v1::Configure lenient = Sound();
  lenient.set_strict(false);
  lenient.set_enforce_eager(false);
  EXPECT_FALSE(FromProto(lenient).runner.strict);
  EXPECT_FALSE(FromProto(lenient).runner.enforce_eager);
}

TEST(ConfigureCodecTest, RefusesWhatCannotBe) {
  const auto refused = [](auto change) {
    v1::Configure message = Sound();
    change(message);
    return std::string(FromProto(message).invalid.message());
  };
  EXPECT_NE(refused([](auto& m) { m.set_rank(2); }).find("rank 2 of 2"), std::string::npos);
  EXPECT_NE(refused([](auto& m) { m.set_device_index(-1); }).find("device index -1"),
            std::string::npos);
  for (const double part : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_NE(refused([&](auto& m) { m.set_gpu_memory_utilization(part); }).find("not in (0, 1]"),
              std::string::npos)
        << part;
  }
  EXPECT_FALSE(refused([](auto& m) { m.set_step_transport("udp"); }).empty());
}

}  // namespace
}  // namespace tandem::worker
