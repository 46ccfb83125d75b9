#include "common/config/configure_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "proto/tandem/v1/worker.pb.h"

namespace tandem::config {
namespace {

// The field at another value than it has: the first of the candidates, its names among them, that
// it takes.
void Change(Field field) {
  const std::string before = field.Text();
  std::vector<std::string> candidates = {R"(m "1".gguf)", "true",   "false", "1.1",
                                         "0.7",           "1234ms", "99",    "1073741824",
                                         "a=b c.gguf,d=e"};
  for (const auto name : absl::StrSplit(field.Allowed(), ", ")) candidates.emplace_back(name);
  for (const std::string& text : candidates) {
    if (field.Set(text).ok() && field.Text() != before) return;
  }
  ADD_FAILURE() << field.name() << " takes no value but " << before;
}

// Nothing is at its default.
WorkerConfig Unusual() {
  WorkerConfig config;
  FieldList fields;
  config.ForEach(fields);
  for (const Field& field : fields.All()) Change(field);
  return config;
}

constexpr uint64_t kFingerprint = 0xfedc'ba98'7654'3210;
constexpr uint64_t kDraftFingerprint = 0x8765'4321'0fed'cba9;
constexpr uint64_t kAdaptersFingerprint = 0xabcd'ef01'2345'6789;

v1::Configure Sound() {
  v1::Configure message;
  ToProto(Unusual(),
          {.epoch = Epoch{3},
           .rank = 1,
           .size = 2,
           .model_fingerprint = kFingerprint,
           .draft_fingerprint = kDraftFingerprint,
           .adapters_fingerprint = kAdaptersFingerprint,
           .device_index = 5,
           .ranks_on_host = 2,
           .kv_cache_bytes = 1ull << 40,
           .cpus = {0, 1, 9},
           .step_channel_address = "/shm"},
          message);
  return message;
}

std::vector<std::string> Texts(WorkerConfig config) {
  FieldList fields;
  config.ForEach(fields);
  std::vector<std::string> texts;
  for (const Field& field : fields.All()) texts.push_back(field.Text());
  return texts;
}

TEST(ConfigureCodecTest, EverySettingArrives) {
  const std::vector<std::string> sent = Texts(Unusual());
  const std::vector<std::string> defaults = Texts(WorkerConfig());
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_NE(sent[i], defaults[i]) << "setting " << i;
  WorkerConfig config;
  WorkerAssignment assignment;
  const absl::Status read = FromProto(Sound(), config, assignment);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(Texts(config), sent);
  EXPECT_EQ(assignment.epoch, Epoch{3});
  EXPECT_EQ(assignment.rank, 1);
  EXPECT_EQ(assignment.size, 2);
  EXPECT_EQ(assignment.model_fingerprint, kFingerprint);
  EXPECT_EQ(assignment.draft_fingerprint, kDraftFingerprint);
  EXPECT_EQ(assignment.adapters_fingerprint, kAdaptersFingerprint);
  EXPECT_EQ(assignment.device_index, 5);
  EXPECT_EQ(assignment.ranks_on_host, 2);
  EXPECT_TRUE(assignment.one_host());
  EXPECT_EQ(assignment.kv_cache_bytes, 1ull << 40);
  EXPECT_EQ(assignment.cpus, (CpuSet{0, 1, 9}));
  EXPECT_EQ(assignment.step_channel_address, "/shm");
}

v1::Setting& Find(v1::Configure& message, const std::string& name) {
  for (v1::Setting& setting : *message.mutable_settings()) {
    if (setting.name() == name) return setting;
  }
  ADD_FAILURE() << name;
  return *message.add_settings();
}

TEST(ConfigureCodecTest, RefusesInOneLine) {
  const auto refused = [](auto change) {
    v1::Configure message = Sound();
    change(message);
    WorkerConfig config;
    WorkerAssignment assignment;
    return std::string(FromProto(message, config, assignment).message());
  };
  EXPECT_EQ(refused([](auto& m) { m.set_rank(2); }), "rank 2 of 2 ranks");
  EXPECT_EQ(refused([](auto& m) { m.set_rank(-1); }), "rank -1 of 2 ranks");
  EXPECT_EQ(refused([](auto& m) { m.set_device_index(-1); }), "device index -1");
  EXPECT_EQ(refused([](auto& m) { m.set_ranks_on_host(0); }), "0 of 2 ranks on this host");
  EXPECT_EQ(refused([](auto& m) { m.set_ranks_on_host(3); }), "3 of 2 ranks on this host");
  EXPECT_EQ(refused([](auto& m) { m.set_cpus("1-0"); }), "'1-0' is no set of CPUs such as 0-15,32");
  EXPECT_EQ(refused([](auto& m) { m.set_cpus("0\n"); }),
            "'0\\n' is no set of CPUs such as 0-15,32");
  EXPECT_EQ(refused([](auto& m) { m.mutable_settings()->DeleteSubrange(0, 1); }),
            "setting 'model' is missing");
  EXPECT_EQ(refused([](auto& m) { *m.add_settings() = m.settings(1); }),
            "setting 'draft-model' is given twice");
  EXPECT_EQ(refused([](auto& m) { m.add_settings()->set_name("warp"); }),
            "setting 'warp' is unknown");
  EXPECT_EQ(refused([](auto& m) { m.add_settings()->set_name("two\nlines"); }),
            "setting 'two\\nlines' is unknown");
  EXPECT_EQ(refused([](auto& m) { Find(m, "step-transport").set_value("shm\n"); }),
            "--step-transport is 'shm\\n', it must be one of shm, grpc");
  EXPECT_EQ(refused([](auto& m) { Find(m, "step-transport").set_value("udp"); }),
            "--step-transport is 'udp', it must be one of shm, grpc");
  for (const char* part : {"0", "-0.5", "1.5", "nan"}) {
    EXPECT_NE(refused([&](auto& m) {
                Find(m, "gpu-memory-utilization").set_value(part);
              }).find("it must be from 0.01 to 1"),
              std::string::npos)
        << part;
  }
  EXPECT_EQ(refused([](auto& m) { Find(m, "max-num-seqs").set_value(""); }),
            "--max-num-seqs is '', it must be a whole number from 1 to 4096");
}

TEST(WorkerAssignmentTest, WeightsBelongToRankFilesDeviceAndCpus) {
  const WorkerAssignment one = {.rank = 1, .size = 2, .model_fingerprint = 3};
  WorkerAssignment other = one;
  other.epoch = Epoch{9};
  other.kv_cache_bytes = 7;
  EXPECT_TRUE(one.SameWeights(other));
  other.rank = 0;
  EXPECT_FALSE(one.SameWeights(other));
  other = one;
  other.device_index = 1;
  EXPECT_FALSE(one.SameWeights(other));
  other = one;
  other.model_fingerprint = 4;
  EXPECT_FALSE(one.SameWeights(other));
  other = one;
  other.draft_fingerprint = 5;
  EXPECT_FALSE(one.SameWeights(other));
  other = one;
  other.adapters_fingerprint = 6;
  EXPECT_FALSE(one.SameWeights(other));
  other = one;
  other.cpus = {6};
  EXPECT_FALSE(one.SameWeights(other));
}

TEST(ConfigureCodecTest, NoAdaptersArriveAsNone) {
  v1::Configure message;
  ToProto(WorkerConfig(), {}, message);
  WorkerConfig config;
  WorkerAssignment assignment;
  ASSERT_TRUE(FromProto(message, config, assignment).ok());
  EXPECT_TRUE(config.model.lora_modules.empty());
}

}  // namespace
}  // namespace tandem::config
