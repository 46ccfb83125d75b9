// HostBackend: shared by all backends that compute on the CPU: memory, phases, copies and the
// stream. A subclass encodes the ops, each as entries of list().
#ifndef TANDEM_KERNELS_HOST_HOST_BACKEND_H_
#define TANDEM_KERNELS_HOST_HOST_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/cpu_set.h"
#include "kernels/backend.h"
#include "kernels/host/op_list.h"
#include "kernels/host/thread_stream.h"

namespace tandem::kernels::host {

class HostBackend : public Backend, private HostStream {
 public:
  std::string_view name() const final { return name_; }

  absl::StatusOr<Buffer> Allocate(size_t bytes) final;
  // The weight is not copied, unless a subclass does. UNIMPLEMENTED for types without CanCompute;
  // INVALID_ARGUMENT for an invalid shape.
  absl::StatusOr<Weight> PlaceWeight(const Weight& host) override;
  absl::StatusOr<Buffer> AllocateHost(size_t bytes) final { return Allocate(bytes); }

  void BeginEncode(EncodeMode mode) final;
  absl::StatusOr<size_t> FinishPlan() final;
  // FAILED_PRECONDITION if the list needs more scratch than plan passes reserved.
  absl::StatusOr<Ticket> Submit(Deadline deadline) final;
  absl::Status Wait(Ticket ticket) final;

  void Upload(void* device, const void* host, size_t bytes) final { Copy(device, host, bytes); }
  void Download(void* host, const void* device, size_t bytes) final { Copy(host, device, bytes); }

  HostStream* host_stream() final { return this; }

 protected:
  // `cpus` as ThreadStream's.
  HostBackend(std::string name, uint32_t threads, const CpuSet& cpus = {});

  // Whether weights of `type` can be multiplied with.
  virtual bool CanCompute(tensor::Type type) const = 0;

  OpList& list() { return list_; }

  // Runs `list`, which needs no scratch, between steps, and waits for it, at most ten minutes.
  absl::Status RunBetweenSteps(const OpList& list);

 private:
  enum class Phase { kIdle, kEncoding, kPlanning, kRunning };

  void Enqueue(std::function<absl::Status(Deadline)> work) final;
  void Copy(void* to, const void* from, size_t bytes);
  size_t ScratchBytes(const ScratchSize& size) const;

  const std::string name_;
  Phase phase_ = Phase::kIdle;
  uint64_t submitted_ = 0;  // so far
  OpList list_;
  ScratchSize reserved_;
  Buffer scratch_;  // shared part, then one part per thread
  ThreadStream stream_;
};

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_HOST_BACKEND_H_
