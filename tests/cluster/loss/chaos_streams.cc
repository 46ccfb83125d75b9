#include "tests/cluster/loss/chaos_streams.h"

#include <algorithm>
#include <utility>

#include "client/channel.h"

namespace tandem::testing {
namespace {

// Of a request; the runs are shorter.
constexpr auto kPatience = std::chrono::minutes(30);

}  // namespace

class ChaosStreams::Call final : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  Call(ChaosStreams& streams, v1::GenerateRequest request)
      : streams_(streams), request_(std::move(request)) {
    context_.set_deadline(client::DeadlineAfter(kPatience));
    streams_.stub_->async()->Generate(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (response_.token_ids_size() > 0) streams_.Delivered(*this, response_.token_ids_size());
    std::string text = answer_.text() + response_.text();
    response_.clear_request_id();
    answer_.MergeFrom(response_);
    answer_.set_text(std::move(text));
    StartRead(&response_);
  }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    streams_.Ended(*this);
  }

  // After the end.
  std::string Answer() const {
    return status_.ok() ? answer_.SerializeAsString() : "failed: " + status_.error_message();
  }

  // Guarded by the streams' mutex:
  int num_tokens = 0;
  bool ended = false;

 private:
  ChaosStreams& streams_;
  const v1::GenerateRequest request_;
  grpc::ClientContext context_;
  v1::GenerateResponse response_;
  v1::GenerateResponse answer_;
  grpc::Status status_;
};

ChaosStreams::ChaosStreams(const std::string& server, std::vector<v1::GenerateRequest> requests)
    : stub_(v1::Generation::NewStub(client::MakeChannel(server))) {
  for (v1::GenerateRequest& request : requests) {
    calls_.push_back(std::make_unique<Call>(*this, std::move(request)));
  }
}

ChaosStreams::~ChaosStreams() { Answers(); }

void ChaosStreams::Delivered(Call& call, int num_tokens) {
  std::lock_guard lock(mutex_);
  call.num_tokens += num_tokens;
  tokens_.insert(tokens_.end(), static_cast<size_t>(num_tokens), Clock::System().Now());
  changed_.notify_all();
}

void ChaosStreams::Ended(Call& call) {
  std::lock_guard lock(mutex_);
  call.ended = true;
  ++num_ended_;
  changed_.notify_all();
}

bool ChaosStreams::WaitTokens(size_t count, Deadline deadline) {
  std::unique_lock lock(mutex_);
  deadline.Wait(changed_, lock,
                [&] { return tokens_.size() >= count || num_ended_ == calls_.size(); });
  return tokens_.size() >= count;
}

bool ChaosStreams::WaitTokenOfEach(Deadline deadline) {
  std::unique_lock lock(mutex_);
  std::vector<int> before;
  for (const auto& call : calls_) before.push_back(call->num_tokens);
  const auto went_on = [&] {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const bool waits = !calls_[i]->ended && calls_[i]->num_tokens == before[i];
      if (waits && before[i] > 0) return false;
    }
    return true;
  };
  deadline.Wait(changed_, lock, went_on);
  return went_on();
}

size_t ChaosStreams::num_tokens() const {
  std::lock_guard lock(mutex_);
  return tokens_.size();
}

std::vector<std::string> ChaosStreams::Answers() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return num_ended_ == calls_.size(); });
  std::vector<std::string> answers;
  for (const auto& call : calls_) answers.push_back(call->Answer());
  return answers;
}

Duration ChaosStreams::PauseBetween(TimePoint begin, TimePoint end) const {
  std::lock_guard lock(mutex_);
  Duration longest{};
  Duration pause{};
  TimePoint last = begin;
  for (auto at = std::lower_bound(tokens_.begin(), tokens_.end(), begin); at != tokens_.end();
       ++at) {
    if (*at > end) break;
    if (*at - last > longest) {
      longest = *at - last;
      pause = *at - begin;
    }
    last = *at;
  }
  return pause;
}

}  // namespace tandem::testing
