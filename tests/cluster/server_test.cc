// The public API of a real server: reference tokens over gRPC, hostile requests beside sound ones,
// refusals at start, external workers.
#include "tests/cluster/server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/cluster/golden_cases.h"

namespace tandem::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kLossNoticed = std::chrono::seconds(40);

std::string LlamaPath() { return GoldenPath("arch/llama/model.gguf"); }

size_t CountLines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = TestServer::Start(LlamaPath(), {"--tensor-parallel-size", "2", "--kv-cache-type",
                                              "f32", "--max-queued-requests", "4"});
    ASSERT_NE(server_, nullptr);
    stub_ = v1::Generation::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  // Runs a request to its end; the tokens come back through `tokens`.
  grpc::Status Generate(const v1::GenerateRequest& request,
                        std::vector<TokenId>* tokens = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    auto reader = stub_->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      if (tokens == nullptr) continue;
      tokens->insert(tokens->end(), response.token_ids().begin(), response.token_ids().end());
    }
    return reader->Finish();
  }

  v1::GenerateRequest GoldenRequest(const GoldenCase& one) {
    v1::GenerateRequest request;
    request.mutable_token_ids()->mutable_ids()->Add(one.tokens.begin(), one.tokens.end());
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_ignore_eos(true);
    request.mutable_sampling()->set_max_tokens(static_cast<int32_t>(one.greedy.size()));
    return request;
  }

  std::unique_ptr<TestServer> server_;
  std::unique_ptr<v1::Generation::Stub> stub_;
};

TEST_F(ServerTest, GivesTheReferenceTokensToAllPromptsAtOnce) {
  const GoldenModel golden = ReadArchGolden("llama");
  std::string lines;
  for (const GoldenCase& one : golden.cases) {
    absl::StrAppend(&lines, "{\"prompt_token_ids\": [", absl::StrJoin(one.tokens, ","),
                    "], \"temperature\": 0, \"ignore_eos\": true, \"max_tokens\": 32}\n");
  }
  const Finished answers = server_->Generate({"--prompts-file", "-"}, lines);
  ASSERT_EQ(answers.exit_code, 0) << answers.err;
  std::istringstream out(answers.out);
  for (const GoldenCase& one : golden.cases) {
    std::string line;
    ASSERT_TRUE(std::getline(out, line));
    const auto answer = nlohmann::json::parse(line);
    EXPECT_EQ(answer.at("token_ids").get<std::vector<TokenId>>(), one.greedy);
    EXPECT_EQ(answer.at("finish_reason"), "length");
    EXPECT_EQ(answer.at("usage").at("prompt_tokens"), one.tokens.size());
    EXPECT_EQ(answer.at("usage").at("completion_tokens"), 32);
  }
}

TEST_F(ServerTest, RefusesHostileRequestsAndServesTheOthers) {
  const GoldenCase sound = ReadArchGolden("llama").cases[2];
  std::vector<std::pair<std::string, v1::GenerateRequest>> hostile;
  auto add = [&](const std::string& what) -> v1::GenerateRequest& {
    hostile.emplace_back(what, GoldenRequest(sound));
    return hostile.back().second;
  };
  add("no prompt").clear_prompt();
  add("empty text").set_text("");
  add("no ids").mutable_token_ids()->clear_ids();
  add("id too large").mutable_token_ids()->add_ids(323);
  add("negative id").mutable_token_ids()->add_ids(-1);
  v1::GenerateRequest& long_prompt = add("prompt too long");
  for (int i = 0; i < 3000; ++i) long_prompt.mutable_token_ids()->add_ids(5);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  add("NaN temperature").mutable_sampling()->set_temperature(nan);
  add("infinite temperature").mutable_sampling()->set_temperature(INFINITY);
  add("negative temperature").mutable_sampling()->set_temperature(-1);
  add("top_p 2").mutable_sampling()->set_top_p(2);
  add("top_p 0").mutable_sampling()->set_top_p(0);
  add("NaN top_p").mutable_sampling()->set_top_p(nan);
  add("min_p -1").mutable_sampling()->set_min_p(-1);
  add("top_k -2").mutable_sampling()->set_top_k(-2);
  add("max_tokens 0").mutable_sampling()->set_max_tokens(0);
  add("huge max_tokens").mutable_sampling()->set_max_tokens(std::numeric_limits<int32_t>::max());
  add("min_tokens above max_tokens").mutable_sampling()->set_min_tokens(33);
  add("logprobs -1").mutable_sampling()->set_logprobs(-1);
  add("logprobs 21").mutable_sampling()->set_logprobs(21);
  add("huge prompt_logprobs")
      .mutable_sampling()
      ->set_prompt_logprobs(std::numeric_limits<int32_t>::max());
  v1::GenerateRequest& stops = add("1000 stop strings");
  for (int i = 0; i < 1000; ++i) stops.mutable_sampling()->add_stop("x");
  add("empty stop string").mutable_sampling()->add_stop("");
  add("stop id out of range").mutable_sampling()->add_stop_token_ids(1 << 30);
  for (const auto& [what, request] : hostile) {
    const grpc::Status status = Generate(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << what;
    EXPECT_FALSE(status.error_message().empty()) << what;
    EXPECT_EQ(CountLines(status.error_message()), 0u) << what;
  }
  std::vector<TokenId> tokens;
  EXPECT_TRUE(Generate(GoldenRequest(sound), &tokens).ok());
  EXPECT_EQ(tokens, sound.greedy);
}

TEST_F(ServerTest, LengthErrorsCarryBothNumbers) {
  v1::GenerateRequest request = GoldenRequest(ReadArchGolden("llama").cases[1]);
  request.mutable_sampling()->set_max_tokens(2042);
  const grpc::Status status = Generate(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("2042"), std::string::npos) << status.error_message();
  EXPECT_NE(status.error_message().find("2048"), std::string::npos) << status.error_message();
}

TEST_F(ServerTest, ADuplicateIdInFlightIsRefusedAndTheFirstContinues) {
  const GoldenCase sound = ReadArchGolden("llama").cases[0];
  v1::GenerateRequest first = GoldenRequest(sound);
  first.set_request_id("same");
  first.mutable_sampling()->set_max_tokens(2000);
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, first);
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.request_id(), "same");
  EXPECT_EQ(Generate(first).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  size_t tokens = static_cast<size_t>(response.token_ids_size());
  while (reader->Read(&response)) tokens += static_cast<size_t>(response.token_ids_size());
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(tokens, 2000u);
  EXPECT_EQ(response.finish_reason(), v1::FINISH_REASON_LENGTH);
}

TEST_F(ServerTest, ReportsTheServedModel) {
  grpc::ClientContext context;
  v1::GetModelInfoResponse info;
  ASSERT_TRUE(stub_->GetModelInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.architecture(), "llama");
  EXPECT_EQ(info.context_length(), 2048);
  EXPECT_EQ(info.vocab_size(), 323);
  EXPECT_EQ(info.tensor_parallel_size(), 2);
}

TEST_F(ServerTest, TokenizeAndDetokenizeAgree) {
  grpc::ClientContext tokenize_context, detokenize_context;
  v1::TokenizeRequest tokenize;
  tokenize.set_text("round and round \xf0\x9f\x8c\x8d");
  tokenize.set_add_special_tokens(false);
  v1::TokenizeResponse tokens;
  ASSERT_TRUE(stub_->Tokenize(&tokenize_context, tokenize, &tokens).ok());
  ASSERT_EQ(tokens.ids_size(), tokens.token_bytes_size());
  EXPECT_EQ(absl::StrJoin(tokens.token_bytes(), ""), tokenize.text());
  v1::DetokenizeRequest detokenize;
  *detokenize.mutable_ids() = tokens.ids();
  v1::DetokenizeResponse text;
  ASSERT_TRUE(stub_->Detokenize(&detokenize_context, detokenize, &text).ok());
  EXPECT_EQ(text.text(), tokenize.text());
}

TEST(ServerStartTest, RefusesInOneLine) {
  const std::string llama = LlamaPath();
  // 2: wrong whatever the model.
  const std::vector<std::pair<int, std::vector<std::string>>> refused = {
      {1, {"--model", llama, "--tensor-parallel-size", "3"}},
      {1, {"--model", llama, "--device", "cuda"}},
      {2, {"--model", llama, "--max-num-batched-tokens", "8", "--max-num-seqs", "16"}},
      {1, {"--model", llama, "--max-model-len", "4096"}},
      {2, {"--model", llama, "--kv-cache-type", "q3"}},
      {1, {"--model", llama, "--kv-cache-type", "q8_0"}},  // heads of 16
      {2, {"--model", llama, "--listen", "nowhere"}},
      {1, {"--model", "no-such-file.gguf"}},
  };
  for (auto [exit_code, flags] : refused) {
    flags.insert(flags.begin(), kCoordinator);
    flags.insert(flags.end(), {"--worker-binary", kWorker});
    const Finished finished = RunProgram(flags);
    EXPECT_EQ(finished.exit_code, exit_code) << absl::StrJoin(flags, " ");
    const size_t message = finished.err.find("tandem_coordinator: ");
    ASSERT_NE(message, std::string::npos) << finished.err;
    EXPECT_EQ(CountLines(finished.err.substr(message)), 1u) << finished.err;
  }
}

// The last line on stderr of a start that must fail.
std::string Refusal(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {kCoordinator, "--model", LlamaPath(), "--listen", "127.0.0.1:0"});
  const Finished finished = RunProgram(flags);
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  const size_t message = finished.err.find("tandem_coordinator: ");
  if (message == std::string::npos) return finished.err;
  EXPECT_EQ(CountLines(finished.err.substr(message)), 1u) << finished.err;
  return finished.err.substr(message);
}

TEST(ServerStartTest, CudaNeedsTheWorkerThatWasBuiltWithIt) {
  EXPECT_NE(Refusal({"--device", "cuda"}).find("there is no tandem_worker_cuda in "),
            std::string::npos);
  EXPECT_NE(Refusal({"--device", "cuda", "--worker-binary", kWorker})
                .find("rank 0: device 'cuda': this program was built without CUDA"),
            std::string::npos);
}

// A default request is served where the context is longer than the cache.
TEST(ServerStartTest, TheContextIsWhatTheCacheHolds) {
  const auto server = TestServer::Start(
      LlamaPath(), {"--max-model-len", "1024", "--block-size", "16", "--num-kv-blocks", "8"});
  ASSERT_NE(server, nullptr);
  constexpr int kUsable = 8 * 16 + 1;  // the last token is drawn but never computed
  EXPECT_TRUE(server->program().WaitStderr(
      absl::StrCat("--max-model-len is 1024, a sequence can use ", kUsable,
                   ": the cache has 8 KV blocks of 16 tokens; raise --kv-cache-memory"),
      Deadline::After(std::chrono::seconds(60))))
      << server->program().Stderr();
  const auto stub = v1::Generation::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::GetModelInfoResponse info;
  ASSERT_TRUE(stub->GetModelInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.context_length(), kUsable);
  const Finished answer =
      server->Generate({"--prompt-token-ids", "5,6,7", "--temperature", "0", "--ignore-eos"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_EQ(json.at("finish_reason"), "length");
  EXPECT_EQ(json.at("usage").at("completion_tokens"), kUsable - 3);
}

// A copy of the llama model whose file can be spoiled.
std::string CopyOfLlama(const std::string& name) {
  std::string copy = ::testing::TempDir() + "/" + name;
  std::ifstream from(LlamaPath(), std::ios::binary);
  std::ofstream(copy, std::ios::binary) << from.rdbuf();
  return copy;
}

// Bytes of 0xff are NaN in every float type. The last ones are of some weight.
TEST(ServerStartTest, WeightsOfNanEndRequestsWithInternal) {
  const std::string model = CopyOfLlama("nan.gguf");
  std::fstream file(model, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::streamoff>(file.tellg());
  file.seekp(size - size / 2);
  file << std::string(static_cast<size_t>(size / 2), '\xff');
  file.close();
  const auto server = TestServer::Start(model);
  ASSERT_NE(server, nullptr);
  for (int i = 0; i < 2; ++i) {
    const Finished answer = server->Generate({"--prompt-token-ids", "5,6,7", "--max-tokens", "4"});
    EXPECT_EQ(answer.exit_code, 1) << answer.out;
    EXPECT_NE((answer.out + answer.err).find("logits are not finite at position 2"),
              std::string::npos)
        << answer.out << answer.err;
  }
  EXPECT_EQ(server->Stats()["tandem_requests_not_finite_total"], 2);
}

// With copied weights the embedding is still looked up in the file.
TEST(ServerStartTest, ACutModelFileIsNamed) {
  for (const char* flag : {"--repack-weights", "--no-repack-weights"}) {
    SCOPED_TRACE(flag);
    const std::string model = CopyOfLlama("cut.gguf");
    const auto server = TestServer::Start(model, {flag});
    ASSERT_NE(server, nullptr);
    std::filesystem::resize_file(model, 4096);
    const Finished answer = server->Generate({"--prompt-token-ids", "5,6,7", "--max-tokens", "4"});
    EXPECT_NE(answer.exit_code, 0) << answer.out;
    EXPECT_EQ(server->program().WaitExit(Deadline::After(kPatience)), 1);
    EXPECT_NE(server->program().Stderr().find("was changed while it was served"), std::string::npos)
        << server->program().Stderr();
  }
}

// Flags that only a device makes use of do no harm on the CPU.
TEST(ServerStartTest, TakesFlagsOfDevices) {
  EXPECT_NE(TestServer::Start(
                LlamaPath(), {"--gpu-memory-utilization", "0.5", "--enforce-eager", "--no-strict"}),
            nullptr);
}

// A coordinator that waits for two workers, of a model that guesses for itself, and where.
class ExternalWorkersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(token_file_) << "a token\n";
    coordinator_ = Program::Start(
        {kCoordinator, "--model", LlamaPath(), "--listen", "127.0.0.1:0", "--tensor-parallel-size",
         "2", "--workers", "external", "--worker-listen", "127.0.0.1:0", "--worker-token-file",
         token_file_, "--speculation", "draft", "--draft-model", LlamaPath()});
    constexpr char kWaiting[] = "waiting for workers on ";
    ASSERT_TRUE(coordinator_->WaitStderr(kWaiting, Deadline::After(kPatience)));
    ASSERT_TRUE(coordinator_->WaitStderr("\n", Deadline::After(kPatience)));
    const std::string log = coordinator_->Stderr();
    const size_t begin = log.find(kWaiting) + sizeof(kWaiting) - 1;
    address_ = log.substr(begin, log.find_first_of(" \n,", begin) - begin);
  }
  std::vector<std::string> Worker(const std::string& token_file,
                                  const std::vector<std::string>& flags) const {
    std::vector<std::string> argv = {kWorker, "--coordinator", address_, "--token-file",
                                     token_file};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return argv;
  }

  // Of a worker whose file by `flag` is missing.
  void ExpectMissing(const std::string& flag);

  const std::string token_file_ = ::testing::TempDir() + "/token";
  std::unique_ptr<Program> coordinator_;
  std::string address_;
};

TEST_F(ExternalWorkersTest, DialInWithTheToken) {
  const std::string wrong_file = ::testing::TempDir() + "/wrong_token";
  std::ofstream(wrong_file) << "another\n";
  const Finished intruder = RunProgram(Worker(wrong_file, {}));
  EXPECT_EQ(intruder.exit_code, 1);
  EXPECT_NE(intruder.err.find("token"), std::string::npos) << intruder.err;

  auto first = Program::Start(Worker(token_file_, {"--rank", "1"}));
  auto second = Program::Start(Worker(token_file_, {"--rank", "auto"}));
  EXPECT_TRUE(coordinator_->WaitStdout("ready: listening on ", Deadline::After(kPatience)))
      << coordinator_->Stderr();
  coordinator_->Signal(SIGTERM);
  EXPECT_EQ(coordinator_->WaitExit(Deadline::After(kPatience)), 0);
  EXPECT_EQ(first->WaitExit(Deadline::After(kPatience)), 0);
  EXPECT_EQ(second->WaitExit(Deadline::After(kPatience)), 0);
}

void ExternalWorkersTest::ExpectMissing(const std::string& flag) {
  auto sound = Program::Start(Worker(token_file_, {"--rank", "0"}));
  auto other = Program::Start(Worker(token_file_, {"--rank", "1", flag, "no-such.gguf"}));
  EXPECT_EQ(coordinator_->WaitExit(Deadline::After(kPatience)), 1);
  EXPECT_NE(coordinator_->Stderr().find("tandem_coordinator: rank 1: no-such.gguf: "),
            std::string::npos)
      << coordinator_->Stderr();
  EXPECT_EQ(other->WaitExit(Deadline::After(kLossNoticed)), 1);
  EXPECT_NE(other->Stderr().find("tandem_worker: no-such.gguf: "), std::string::npos)
      << other->Stderr();
  // So that a service manager restarts it with the coordinator.
  EXPECT_EQ(sound->WaitExit(Deadline::After(kLossNoticed)), 1);
  EXPECT_NE(sound->Stderr().find("the coordinator has failed"), std::string::npos)
      << sound->Stderr();
}

TEST_F(ExternalWorkersTest, AMissingModelIsNamedAndIsTheWorkersFailure) {
  ExpectMissing("--model");
}

TEST_F(ExternalWorkersTest, SoIsAMissingDraftModel) { ExpectMissing("--draft-model"); }

TEST_F(ExternalWorkersTest, AKilledOneIsNamedWhileTheOtherIsWaitedFor) {
  auto first = Program::Start(Worker(token_file_, {"--rank", "1"}));
  ASSERT_TRUE(coordinator_->WaitStderr("rank 1 connected", Deadline::After(kPatience)));
  first->Signal(SIGKILL);
  EXPECT_TRUE(coordinator_->WaitStderr("rank 1 disconnected", Deadline::After(kPatience)));
  auto again = Program::Start(Worker(token_file_, {"--rank", "1"}));
  auto other = Program::Start(Worker(token_file_, {"--rank", "0"}));
  EXPECT_TRUE(coordinator_->WaitStdout("ready: listening on ", Deadline::After(kPatience)))
      << coordinator_->Stderr();
}

TEST_F(ExternalWorkersTest, AStoppedOneLosesItsRankToAnother) {
  auto first = Program::Start(Worker(token_file_, {"--rank", "0"}));
  auto stopped = Program::Start(Worker(token_file_, {"--rank", "1"}));
  ASSERT_TRUE(coordinator_->WaitStdout("ready: listening on ", Deadline::After(kPatience)))
      << coordinator_->Stderr();
  stopped->Signal(SIGSTOP);
  ASSERT_TRUE(coordinator_->WaitStderr("rank 1 disconnected", Deadline::After(kPatience)))
      << coordinator_->Stderr();
  auto again = Program::Start(Worker(token_file_, {"--rank", "1"}));
  EXPECT_TRUE(coordinator_->WaitStderr("serving again", Deadline::After(kPatience)))
      << coordinator_->Stderr();
}

TEST(WorkerStartTest, AnAddressWithoutPortIsSaidAtOnce) {
  const std::string token_file = ::testing::TempDir() + "/token";
  std::ofstream(token_file) << "a token\n";
  const Finished finished =
      RunProgram({kWorker, "--coordinator", "foo", "--token-file", token_file});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_NE(finished.err.find("--coordinator: address 'foo' must be HOST:PORT"), std::string::npos)
      << finished.err;
}

TEST(WorkerStartTest, SaysThatNoCoordinatorAnswers) {
  const std::string token_file = ::testing::TempDir() + "/token";
  std::ofstream(token_file) << "a token\n";
  auto worker =
      Program::Start({kWorker, "--coordinator", "127.0.0.1:1", "--token-file", token_file});
  EXPECT_TRUE(
      worker->WaitStderr("no coordinator answers on 127.0.0.1:1 yet", Deadline::After(kPatience)));
}

TEST(WorkerStartTest, AMissingTokenFileIsSaidWithTheReason) {
  const Finished finished =
      RunProgram({kWorker, "--coordinator", "127.0.0.1:1", "--token-file", "no-such-file"});
  EXPECT_NE(
      finished.err.find("--token-file: cannot read 'no-such-file': No such file or directory"),
      std::string::npos)
      << finished.err;
}

TEST_F(ExternalWorkersTest, ARankWithAnotherModelIsTheOneThatIsNamed) {
  auto sound = Program::Start(Worker(token_file_, {"--rank", "0"}));
  auto other = Program::Start(
      Worker(token_file_, {"--rank", "1", "--model", GoldenPath("arch/qwen2/model.gguf")}));
  EXPECT_EQ(coordinator_->WaitExit(Deadline::After(kPatience)), 1);
  const std::string log = coordinator_->Stderr();
  EXPECT_NE(log.find("tandem_coordinator: rank 1: "), std::string::npos) << log;
  EXPECT_NE(log.find("qwen2/model.gguf: model file differs"), std::string::npos) << log;
  // Also the one that waits for it.
  EXPECT_TRUE(sound->WaitExit(Deadline::After(kLossNoticed)).has_value());
  EXPECT_TRUE(other->WaitExit(Deadline::After(kLossNoticed)).has_value());
}

}  // namespace
}  // namespace tandem::testing
