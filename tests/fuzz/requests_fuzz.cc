// Requests to the public services, from bytes to what the engine is given. The first byte chooses
// the API.
#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/rpc/library_log.h"
#include "coordinator/api/grpc/embed_form.h"
#include "coordinator/api/grpc/score_form.h"
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
    config.hidden_size = coordinator::kHidden;
    config.scheduler.max_model_len = coordinator::kMaxModelLen;
    config.kv_cache.block_size = 4;
    config.kv_cache.groups = {{.num_blocks = 64}};
    return new coordinator::RequestCheck(config);
  }();
  return *check;
}

struct NoStream : coordinator::TokenStream {
  coordinator::Taken OnUpdate(coordinator::StreamUpdate) override { return {}; }
  void Flush() override {}
};

void CheckRefusal(const absl::Status& status) {
  TANDEM_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
               status.code() == absl::StatusCode::kNotFound ||
               status.code() == absl::StatusCode::kUnimplemented)
      << status;
  TANDEM_CHECK(!status.message().empty() && status.message().size() < 2000) << status;
  TANDEM_CHECK(status.message().find('\n') == absl::string_view::npos) << status;
}

// True where the engine takes it.
bool TakePlan(coordinator::CallPlan plan) {
  auto requests = plan.build(Model());
  if (!requests.ok()) {
    CheckRefusal(requests.status());
    return false;
  }
  const size_t count = requests->size();
  TANDEM_CHECK(count >= 1 && count <= size_t{kMaxChoices});
  TANDEM_CHECK(count == static_cast<size_t>(plan.num_requests));
  coordinator::Request& last = requests->back();
  const auto text =
      coordinator::TextStream::Create(*Model().tokenizer, last.sampling, plan.skip_special_tokens);
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
  if (input[0] % 4 == 0) {
    form = std::make_unique<coordinator::TandemForm>();
  } else if (input[0] % 4 == 1) {
    form = std::make_unique<coordinator::VllmForm>();
  } else if (input[0] % 4 == 2) {
    form = std::make_unique<coordinator::ScoreForm>();
  } else {
    form = std::make_unique<coordinator::EmbedForm>();
  }
  const grpc::Slice slice(input.data() + 1, input.size() - 1);
  auto plan = form->Parse(grpc::ByteBuffer(&slice, 1));
  if (!plan.ok()) {
    CheckRefusal(plan.status());
    return false;
  }
  return TakePlan(*std::move(plan));
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
  v1::ScoreRequest score;
  score.set_text("hi");
  score.add_continuations()->set_text(" there");
  score.add_continuations()->mutable_token_ids()->add_ids(3);
  v1::EmbedRequest embed;
  embed.add_inputs()->set_text("hi");
  embed.add_inputs()->mutable_token_ids()->add_ids(3);
  embed.set_pooling(v1::POOLING_MEAN);
  embed.set_dimensions(2);
  return {Seed(0, plain), Seed(0, full), Seed(1, vllm), Seed(2, score), Seed(3, embed)};
}

}  // namespace tandem::fuzz
