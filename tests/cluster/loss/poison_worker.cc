// A worker that dies, as if by a bug in a kernel, when it computes the token whose id is in the
// environment's TANDEM_TEST_POISON_TOKEN. Its device "cuda" is the CPU.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "common/base/status.h"
#include "kernels/factory.h"
#include "worker/control/worker_main.h"

namespace tandem::kernels {
namespace {

// The CPU's backend but for the poison.
class PoisonBackend final : public Backend {
 public:
  PoisonBackend(std::unique_ptr<Backend> cpu, TokenId poison)
      : cpu_(std::move(cpu)), poison_(poison) {}

  std::string_view name() const override { return cpu_->name(); }
  absl::StatusOr<Buffer> Allocate(size_t bytes) override { return cpu_->Allocate(bytes); }
  absl::StatusOr<Buffer> AllocateHost(size_t bytes) override { return cpu_->AllocateHost(bytes); }
  bool WantsKeyColumns(const KvPages& shape) const override { return cpu_->WantsKeyColumns(shape); }
  absl::StatusOr<Weight> PlaceWeight(const Weight& host) override {
    return cpu_->PlaceWeight(host);
  }
  void BeginEncode(EncodeMode mode) override {
    mode_ = mode;
    cpu_->BeginEncode(mode);
  }
  absl::StatusOr<size_t> FinishPlan() override { return cpu_->FinishPlan(); }
  absl::StatusOr<Ticket> Submit(Deadline deadline) override { return cpu_->Submit(deadline); }
  absl::Status Wait(Ticket ticket) override { return cpu_->Wait(ticket); }
  void Upload(void* device, const void* host, size_t bytes) override {
    cpu_->Upload(device, host, bytes);
  }
  void Download(void* host, const void* device, size_t bytes) override {
    cpu_->Download(host, device, bytes);
  }
  HostStream* host_stream() override { return cpu_->host_stream(); }

  void Encode(const Op& op) override {
    const auto* const embed = std::get_if<EmbedParams>(&op);
    if (embed != nullptr && mode_ == EncodeMode::kRun) {
      cpu_->host_stream()->Enqueue([this, ids = std::span(embed->ids, embed->tokens)](Deadline) {
        if (std::ranges::count(ids, poison_) > 0) std::abort();
        return absl::OkStatus();
      });
    }
    cpu_->Encode(op);
  }

 private:
  const std::unique_ptr<Backend> cpu_;
  const TokenId poison_;
  EncodeMode mode_ = EncodeMode::kRun;
};

absl::StatusOr<std::unique_ptr<Backend>> MakePoisonBackend(int) {
  const char* const poison = std::getenv("TANDEM_TEST_POISON_TOKEN");
  if (poison == nullptr) return absl::InvalidArgumentError("TANDEM_TEST_POISON_TOKEN is not set");
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Backend> cpu, MakeBackend({.threads = 1}));
  return std::make_unique<PoisonBackend>(std::move(cpu), std::stoi(poison));
}

}  // namespace
}  // namespace tandem::kernels

int main(int argc, char** argv) {
  tandem::kernels::RegisterCuda(tandem::kernels::MakePoisonBackend);
  return tandem::worker::WorkerMain(argc, argv);
}
