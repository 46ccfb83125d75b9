// Requests to the public services, from bytes to what the engine is given. The first byte chooses
// the API.
#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/rpc/library_log.h"
#include "coordinator/api/grpc/tandem_form.h"
#include "coordinator/api/request_builder.h"
#include "coordinator/api/text_stream.h"
#include "coordinator/api/vllm/vllm_form.h"
#include "coordinator/engine/request_check.h"
#include "proto/tandem/v1/generation.pb.h"
#include "tests/coordinator/api/serving_model_for_test.h"
#include "tests/fuzz/target.h"

namespace tandem::fuzz {
namespace {

using coordinator::ServingModel;

const ServingModel& Model() {
  static const ServingModel* const model = new ServingModel(coordinator::ServingModelForTest());
  return *model;
}

const coordinator::RequestCheck& Check() {
  static const coordinator::RequestCheck* const check = [] {
    coordinator::EngineConfig config;
    config.vocab_size = coordinator::kHead;
    config.scheduler.max_model_len = coordinator::kMaxModelLen;
    config.kv_cache.block_size = 4;
    config.kv_cache.groups = {{.num_blocks = 64}};
    return new coordinator::RequestCheck(config);
  }();
  return *check;
}

struct NoStream : coordinator::TokenStream {
  bool OnUpdate(coordinator::StreamUpdate) override { return true; }
  void Flush() override {}
};

void CheckRefusal(const absl::Status& status) {
  TANDEM_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
               status.code() == absl::StatusCode::kUnimplemented)
      << status;
  TANDEM_CHECK(!status.message().empty() && status.message().size() < 2000) << status;
  TANDEM_CHECK(status.message().find('\n') == absl::string_view::npos) << status;
}

// True where the engine takes it.
bool TakeParams(coordinator::GenerateParams params) {
  const int32_t n = params.n;
  const bool skip_special = params.skip_special_tokens;
  auto request = coordinator::BuildRequest(std::move(params), Model());
  if (!request.ok()) {
    CheckRefusal(request.status());
    return false;
  }
  TANDEM_CHECK(n >= 1 && n <= kMaxChoices);
  coordinator::Request last = Continuation(*request, static_cast<uint32_t>(n - 1));
  const auto text =
      coordinator::TextStream::Create(*Model().tokenizer, last.sampling, skip_special);
  last.stream = std::make_shared<NoStream>();
  const absl::Status checked = text.ok() ? Check().Check(last) : text.status();
  if (!checked.ok()) CheckRefusal(checked);
  return checked.ok();
}

template <typename Message>
Bytes Seed(uint8_t first, const Message& message) {
  const std::string rest = message.SerializeAsString();
  Bytes bytes(rest.begin(), rest.end());
  bytes.insert(bytes.begin(), first);
  return bytes;
}

}  // namespace

bool Take(std::span<const uint8_t> input) {
  if (input.empty()) return false;
  RouteLibraryLogs();
  std::unique_ptr<coordinator::GenerateForm> form;
  if (input[0] % 2 == 0) {
    form = std::make_unique<coordinator::TandemForm>();
  } else {
    form = std::make_unique<coordinator::VllmForm>();
  }
  const grpc::Slice slice(input.data() + 1, input.size() - 1);
  auto params = form->Parse(grpc::ByteBuffer(&slice, 1));
  if (!params.ok()) {
    CheckRefusal(params.status());
    return false;
  }
  return TakeParams(*std::move(params));
}

std::vector<Bytes> Seeds() {
  v1::GenerateRequest plain, full;
  plain.set_text("hi");
  full.mutable_token_ids()->add_ids(3);
  v1::SamplingParams& sampling = *full.mutable_sampling();
  sampling.set_n(3);
  sampling.set_max_tokens(5);
  sampling.set_temperature(0.5f);
  sampling.set_top_k(4);
  sampling.set_logprobs(2);
  sampling.add_stop("end");
  sampling.add_bad_words("bad");
  sampling.add_dry_sequence_breakers("x");
  sampling.set_dry_multiplier(1);
  (*sampling.mutable_logit_bias())[7] = -1;
  coordinator::vllm_api::GenerateRequest vllm;
  vllm.mutable_tokenized()->add_input_ids(3);
  vllm.mutable_sampling_params()->set_max_tokens(4);
  vllm.mutable_sampling_params()->set_truncate_prompt_tokens(1);
  return {Seed(0, plain), Seed(0, full), Seed(1, vllm)};
}

}  // namespace tandem::fuzz
