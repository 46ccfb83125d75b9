#include "client/generation_run.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::client {

// One call; deletes itself when it is over.
class GenerationRun::Call final : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  Call(GenerationRun& run, size_t index, size_t ended_before)
      : run_(run),
        index_(index),
        ended_before_(ended_before),
        stub_(v1::Generation::NewStub(run.channel_)) {
    context_.set_deadline(DeadlineAfter(run.timeout_));
  }

  void Start() {
    stub_->async()->Generate(&context_, &(*run_.requests_)[index_], this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone has the reason
    had_token_ |= !response_.token_ids().empty();
    finished_ |= response_.finish_reason() != v1::FINISH_REASON_UNSPECIFIED;
    if (!run_.OnDelta(index_, response_)) context_.TryCancel();
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& grpc_status) override {
    absl::Status status = FromGrpc(grpc_status, run_.server_);
    if (status.ok() && !finished_) {
      status = absl::InternalError("the server ended the stream without a finish reason");
    }
    GenerationRun& run = run_;
    const size_t index = index_;
    const size_t ended_before = ended_before_;
    const bool had_token = had_token_;
    delete this;  // the run may be destroyed as soon as it is notified
    run.OnCallEnd(index, ended_before, had_token, status);
  }

 private:
  GenerationRun& run_;
  const size_t index_;
  const size_t ended_before_;  // requests that had ended when the call began
  const std::unique_ptr<v1::Generation::Stub> stub_;
  grpc::ClientContext context_;
  v1::GenerateResponse response_;
  bool had_token_ = false;
  bool finished_ = false;
};

GenerationRun::GenerationRun(std::shared_ptr<grpc::Channel> channel, std::string server,
                             Duration timeout)
    : channel_(std::move(channel)), server_(std::move(server)), timeout_(timeout) {}

void GenerationRun::Run(const std::vector<v1::GenerateRequest>& requests,
                        GenerationListener& listener) {
  requests_ = &requests;
  listener_ = &listener;
  {
    MutexLock lock(mutex_);
    in_flight_ = requests.size();
  }
  for (size_t index = 0; index < requests.size(); ++index) Start(index);
  // Every call has a deadline, so this ends.
  MutexLock lock(mutex_);
  all_ended_.Wait(lock, [&]() TANDEM_REQUIRES(mutex_) { return num_ended_ == requests.size(); });
}

void GenerationRun::Start(size_t index) {
  size_t ended_before = 0;
  {
    MutexLock lock(mutex_);
    ended_before = num_ended_;
  }
  (new Call(*this, index, ended_before))->Start();
}

bool GenerationRun::OnDelta(size_t index, const v1::GenerateResponse& delta) {
  MutexLock lock(mutex_);
  return listener_->OnDelta(index, delta);
}

void GenerationRun::OnCallEnd(size_t index, size_t ended_before, bool had_token,
                              const absl::Status& status) {
  std::optional<size_t> again;
  {
    MutexLock lock(mutex_);
    --in_flight_;
    // Capacity is freed when another call ends, possibly before the rejection arrived.
    const bool refused = absl::IsResourceExhausted(status) && !had_token;
    if (refused && (in_flight_ > 0 || num_ended_ > ended_before)) {
      refused_.push_back(index);
      if (in_flight_ > 0) return;
    } else {
      listener_->OnEnd(index, status);
      ++num_ended_;
    }
    if (!refused_.empty()) {
      again = refused_.front();
      refused_.pop_front();
      ++in_flight_;
    } else if (in_flight_ == 0) {
      all_ended_.NotifyAll();  // under the lock: Run's caller destroys us right after
      return;
    }
  }
  if (again.has_value()) Start(*again);
}

}  // namespace tandem::client
