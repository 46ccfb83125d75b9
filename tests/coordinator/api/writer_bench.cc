// What a writer's thread spends per token (detokenizing, stop strings, protobuf, StartWrite) with
// real gRPC streams on loopback, and beside it what the engine's thread spends per step. Processor
// time of those threads only: clients, gRPC's threads and simulated workers do not count.
#include <benchmark/benchmark.h>
#include <grpcpp/grpcpp.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/api/grpc/grpc_server.h"
#include "coordinator/engine/engine_loop.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/coordinator/api/serving_model_for_test.h"
#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

constexpr uint32_t kPrompt = 64;
constexpr uint32_t kGenerate = 256;

int64_t ThreadNanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

struct WriterTime {
  std::atomic<int64_t> nanoseconds = 0;
  std::atomic<int64_t> num_tokens = 0;
};

// Times another stream.
class TimedStream : public TokenStream {
 public:
  TimedStream(std::shared_ptr<TokenStream> stream, WriterTime& time)
      : stream_(std::move(stream)), time_(time) {}

  Taken OnUpdate(StreamUpdate update) override {
    time_.num_tokens += static_cast<int64_t>(update.tokens.size());
    const int64_t begin = ThreadNanoseconds();
    const Taken taken = stream_->OnUpdate(std::move(update));
    time_.nanoseconds += ThreadNanoseconds() - begin;
    return taken;
  }
  void Flush() override {
    const int64_t begin = ThreadNanoseconds();
    stream_->Flush();
    time_.nanoseconds += ThreadNanoseconds() - begin;
  }

 private:
  const std::shared_ptr<TokenStream> stream_;
  WriterTime& time_;
};

// An engine whose streams are timed.
class TimedEngine : public EngineHandle {
 public:
  TimedEngine(EngineHandle& engine, WriterTime& time) : engine_(engine), time_(time) {}

  absl::StatusOr<std::vector<RequestHandle>> AddAll(std::vector<Request> requests) override {
    for (Request& request : requests) {
      request.stream = std::make_shared<TimedStream>(std::move(request.stream), time_);
    }
    return engine_.AddAll(std::move(requests));
  }
  void Cancel(RequestHandle handle) override { engine_.Cancel(handle); }
  absl::Status ResetPrefixCache() override { return engine_.ResetPrefixCache(); }
  EngineStats Stats() const override { return engine_.Stats(); }

 private:
  EngineHandle& engine_;
  WriterTime& time_;
};

SimulatedEngine BenchEngine(uint32_t num_seqs) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.config.scheduler.max_num_seqs = num_seqs;
  engine.config.scheduler.max_num_batched_tokens = std::max(num_seqs, 4096u);
  engine.config.scheduler.chunked_prefill_size = 4096;
  engine.config.scheduler.max_model_len = kPrompt + kGenerate;
  engine.config.kv_cache.block_size = 16;
  engine.config.kv_cache.groups[0].num_blocks = num_seqs * (kPrompt + kGenerate) / 16 + 1;
  return engine;
}

// One request to its end. The number of tokens that came.
int RunClient(v1::Generation::Stub& stub, uint32_t number) {
  v1::GenerateRequest request;
  for (uint32_t i = 0; i < kPrompt; ++i) {
    request.mutable_token_ids()->add_ids(static_cast<int32_t>((number * 31 + i * 7) % 97));
  }
  v1::SamplingParams& sampling = *request.mutable_sampling();
  sampling.set_temperature(0);
  sampling.set_max_tokens(kGenerate);
  for (const char* stop : {"\nUser:", "<end>", "###", "Observation:"}) sampling.add_stop(stop);
  grpc::ClientContext context;
  const auto reader = stub.Generate(&context, request);
  v1::GenerateResponse response;
  int num_tokens = 0;
  while (reader->Read(&response)) num_tokens += response.token_ids_size();
  return reader->Finish().ok() ? num_tokens : 0;
}

void BM_Writers(benchmark::State& state) {
  const auto num_streams = static_cast<uint32_t>(state.range(0));
  WriterTime time;
  const SimulatedEngine simulated = BenchEngine(num_streams);
  EngineLoop loop(simulated.Make(), nullptr);
  TimedEngine engine(loop, time);
  ServingModel model = ServingModelForTest();
  model.max_model_len = kPrompt + kGenerate;
  model.vocab_size = simulated.config.vocab_size;
  auto socket = net::ListenSocket::Bind("--listen", "127.0.0.1:0");
  if (!socket.ok()) return state.SkipWithError(std::string(socket.status().message()).c_str());
  ServerState server_state(1);
  auto server = GrpcServer::Start(*std::move(socket), num_streams + 1, server_state);
  if (!server.ok()) return state.SkipWithError(std::string(server.status().message()).c_str());
  (*server)->Serve(std::move(model), engine, 1024);
  const auto stub = v1::Generation::NewStub(
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials()));
  for (auto _ : state) {
    const int64_t tokens_before = time.num_tokens, ns_before = time.nanoseconds;
    std::atomic<uint32_t> num_received = 0;
    std::vector<std::thread> clients;
    for (uint32_t i = 0; i < num_streams; ++i) {
      clients.emplace_back([&, i] { num_received += static_cast<uint32_t>(RunClient(*stub, i)); });
    }
    for (std::thread& client : clients) client.join();
    if (num_received != num_streams * kGenerate) {
      state.SkipWithError("tokens are missing");
      break;
    }
    state.SetIterationTime(1e-9 * static_cast<double>(time.nanoseconds - ns_before) /
                           static_cast<double>(time.num_tokens - tokens_before));
  }
  (*server)->Shutdown(Deadline::After(std::chrono::seconds(10)));
  loop.Shutdown();
  const EngineStepTimings timings = loop.Timings();
  state.counters["engine_us_per_step"] =
      1e-3 * static_cast<double>(timings.coordinator_ns()) / static_cast<double>(timings.steps);
  state.counters["engine_apply_us_per_step"] =
      1e-3 * static_cast<double>(timings.apply_ns) / static_cast<double>(timings.steps);
}

// The time is a token's.
BENCHMARK(BM_Writers)
    ->Arg(1)
    ->Arg(64)
    ->Arg(256)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(3);

}  // namespace
}  // namespace tandem::coordinator
