#include "common/config/server_config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/config/worker_cpus.h"

namespace tandem::config {
namespace {

TEST(ServerConfigTest, RefusesByFlagName) {
  const auto refused = [](auto change) {
    ServerConfig config;
    change(config);
    return std::string(Validate(config).message());
  };
  EXPECT_TRUE(Validate(ServerConfig()).ok());
  EXPECT_EQ(refused([](auto& c) { c.worker.device.gpu_memory_utilization = 1.5; }),
            "--gpu-memory-utilization is 1.5, it must be from 0.01 to 1");
  EXPECT_EQ(refused([](auto& c) { c.worker.limits.max_num_seqs = 1000; }), "");
  EXPECT_EQ(refused([](auto& c) {
              c.worker.limits = {.max_num_seqs = 1000, .max_num_batched_tokens = 512};
            }),
            "--max-num-batched-tokens 512 is below --max-num-seqs 1000: every running sequence "
            "needs a token of each step");
  EXPECT_EQ(refused([](auto& c) { c.worker.cache.block_size = 0; }),
            "--block-size is 0, it must be from 1 to 4096");
  EXPECT_EQ(refused([](auto& c) { c.cluster.workers = WorkerSource::kExternal; }),
            "--workers external needs --worker-token-file");
  EXPECT_EQ(refused([](auto& c) { c.scheduling.speculation = Speculation::kDraft; }),
            "--speculation draft needs --draft-model");
  EXPECT_EQ(refused([](auto& c) { c.worker.model.draft_path = "small.gguf"; }),
            "--draft-model small.gguf needs --speculation draft");
  const auto refused_with_draft = [&](auto change) {
    return refused([&](auto& c) {
      c.scheduling.speculation = Speculation::kDraft;
      c.worker.model.draft_path = "small.gguf";
      change(c);
    });
  };
  EXPECT_EQ(refused_with_draft([](auto&) {}), "");
  EXPECT_EQ(refused_with_draft([](auto& c) {
              c.worker.limits = {.max_num_seqs = 1, .max_num_batched_tokens = 1};
            }),
            "--max-num-batched-tokens 1: --speculation draft needs at least 2, a sequence's last "
            "token and a guess");
  EXPECT_EQ(refused_with_draft([](auto& c) { c.worker.model.spec.load_draft_head = true; }),
            "--load-draft-head: --speculation draft has no use for the model's own head");
  EXPECT_EQ(refused_with_draft([](auto& c) { c.scheduling.chunked_prefill_size = 1; }),
            "--chunked-prefill-size 1: --speculation draft needs at least 2, a sequence's last "
            "token and a guess");
}

TEST(ServerConfigTest, AdaptersHaveNamesOfTheirOwn) {
  const auto refused = [](std::vector<LoraModule> modules) {
    ServerConfig config;
    config.worker.model.path = "m.gguf";
    config.worker.model.lora_modules = std::move(modules);
    return std::string(Validate(config).message());
  };
  EXPECT_EQ(refused({{"a", "x"}, {"b", "x"}}), "");
  EXPECT_EQ(refused({{"a", "x"}, {"b", "y"}, {"a", "z"}}), "--lora-modules has the name 'a' twice");
  constexpr char kWhy[] = " must be UTF-8 of at most 128 bytes without control characters";
  for (const std::string& name :
       {std::string("a\xff"), std::string("a\n"), std::string(129, 'n')}) {
    EXPECT_TRUE(refused({{name, "x"}}).ends_with(kWhy)) << refused({{name, "x"}});
  }
  EXPECT_EQ(refused({{std::string(128, 'n'), "x"}}), "");
  std::vector<LoraModule> many;
  for (int i = 0; i < 65; ++i) many.push_back({std::to_string(i), "x"});
  EXPECT_EQ(refused(many), "--lora-modules has 65 adapters, at most 64");
}

TEST(LoraModuleTest, IsANameAndAFile) {
  std::vector<LoraModule> modules;
  EXPECT_TRUE(FromText("sql=a.gguf,x=/b/c=d.gguf", modules));
  EXPECT_EQ(modules, (std::vector<LoraModule>{{"sql", "a.gguf"}, {"x", "/b/c=d.gguf"}}));
  EXPECT_EQ(ToText(modules), "sql=a.gguf,x=/b/c=d.gguf");
  for (const char* wrong : {"sql", "=a.gguf", "sql=", "=", "a=b,"}) {
    std::vector<LoraModule> others;
    EXPECT_FALSE(FromText(wrong, others)) << wrong;
  }
}

ServerConfig OnCpus(const std::string& cpus, int threads = 0) {
  ServerConfig config;
  config.cluster.tensor_parallel_size = 2;
  config.cluster.worker_cpus = cpus;
  config.worker.device.threads = threads;
  return config;
}

TEST(WorkerCpusTest, ASetPerRank) {
  EXPECT_EQ(*WorkerCpus(OnCpus("")), std::vector<CpuSet>());
  EXPECT_EQ(*WorkerCpus(OnCpus("0-2/8,10")), (std::vector<CpuSet>{{0, 1, 2}, {8, 10}}));
  EXPECT_EQ(DefaultThreads(*WorkerCpus(OnCpus("0-2/8,10")), 64, 2), 2);
  EXPECT_EQ(DefaultThreads({}, 64, 2), 32);
  EXPECT_EQ(DefaultThreads({}, 1, 2), 1);
  EXPECT_EQ(DefaultThreads(*WorkerCpus(OnCpus("0-1999/2000-3999")), 64, 2), 1024);
}

TEST(WorkerCpusTest, RefusesInOneLine) {
  const auto refused = [](const ServerConfig& config) {
    return std::string(Validate(config).message());
  };
  EXPECT_EQ(refused(OnCpus("0-1/2-3", 2)), "");
  EXPECT_EQ(refused(OnCpus("0-1/x")), "--worker-cpus: 'x' is no set of CPUs such as 0-15,32");
  EXPECT_EQ(refused(OnCpus("0-3")),
            "--worker-cpus 0-3 is of 1 worker(s), --tensor-parallel-size is 2");
  EXPECT_EQ(refused(OnCpus("0-1/2", 2)),
            "--threads-per-worker 2: --worker-cpus 2 has 1, needed one for each thread");
  EXPECT_EQ(refused(OnCpus("0-2/2-3")), "--worker-cpus 0-2/2-3: CPU 2 is given to two workers");
  ServerConfig config = OnCpus("0-2/2-3");
  config.cluster.workers = WorkerSource::kExternal;
  EXPECT_FALSE(WorkerCpus(config).ok());  // steps come by shared memory
  config.worker.device.device = Device::kCuda;
  EXPECT_FALSE(WorkerCpus(config).ok());
  config.worker.transport.step_transport = StepTransport::kGrpc;
  EXPECT_TRUE(WorkerCpus(config).ok());  // two hosts
  config.worker.device.device = Device::kCpu;
  EXPECT_TRUE(WorkerCpus(config).ok());
  config.worker.transport.collective_transport = CollectiveTransport::kShm;
  EXPECT_FALSE(WorkerCpus(config).ok());
  config = OnCpus("0/1", 2);
  config.worker.device.device = Device::kCuda;  // has no threads that compute
  EXPECT_EQ(refused(config), "");
}

TEST(ServerConfigTest, DraftsOfTheModelsOwnHeadLoadIt) {
  ServerConfig config;
  config.scheduling.speculation = Speculation::kMtp;
  EXPECT_EQ(Validate(config).message(), "--speculation mtp needs --load-draft-head");
  Complete(config);
  EXPECT_EQ(Validate(config), absl::OkStatus());
  config.scheduling.chunked_prefill_size = 1;
  EXPECT_EQ(Validate(config).message(),
            "--chunked-prefill-size 1: --speculation mtp needs at least 2, a sequence's last token "
            "and a guess");
  ServerConfig other;
  Complete(other);
  EXPECT_FALSE(other.worker.model.spec.load_draft_head);
}

TEST(ServerConfigTest, NamesAreGivenOnce) {
  ServerConfig config;
  FieldList fields;
  config.ForEach(fields);
  std::set<std::string_view> names;
  for (const Field& field : fields.All()) {
    EXPECT_TRUE(names.insert(field.name()).second) << field.name();
    EXPECT_TRUE(field.flag().starts_with("--")) << field.flag();
    EXPECT_FALSE(field.meta().help.empty()) << field.flag();
  }
}

TEST(ServerConfigTest, TheDocumentIsWhatTheSchemaPrints) {
  std::ifstream file("docs/configuration.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(page, ConfigurationPage())
      << "bazel run //tools/docs:configuration_page > docs/configuration.md";
}

TEST(WorkerConfigTest, OnlyWhatWeightsDependOnNeedsThemLoadedAnew) {
  const auto reload = [](auto change) {
    WorkerConfig changed;
    change(changed);
    return NeedsReload(WorkerConfig(), changed);
  };
  EXPECT_FALSE(reload([](auto&) {}));
  EXPECT_TRUE(reload([](auto& c) { c.model.path = "other.gguf"; }));
  EXPECT_TRUE(reload([](auto& c) { c.model.draft_path = "other.gguf"; }));
  EXPECT_TRUE(reload([](auto& c) { c.model.lora_modules = {{"a", "x"}}; }));
  EXPECT_TRUE(reload([](auto& c) { c.model.spec.rope_scale = 2; }));
  EXPECT_TRUE(reload([](auto& c) { c.model.spec.load_draft_head = true; }));
  EXPECT_TRUE(reload([](auto& c) { c.model.expert_parallel = true; }));
  EXPECT_TRUE(reload([](auto& c) { c.device.device = Device::kCuda; }));
  EXPECT_TRUE(reload([](auto& c) { c.device.threads = 3; }));
  EXPECT_FALSE(reload([](auto& c) { c.cache.num_kv_blocks = 7; }));
  EXPECT_FALSE(reload([](auto& c) { c.limits.max_num_seqs = 7; }));
  EXPECT_FALSE(reload([](auto& c) { c.device.strict = false; }));
}

}  // namespace
}  // namespace tandem::config
