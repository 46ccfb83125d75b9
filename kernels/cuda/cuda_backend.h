// CudaBackend: ops on one GPU, encoded on its own stream.
//
// ENCODE launches: the GPU may begin before SUBMIT, which only records an event at the end; neither
// blocks. WAIT polls that event and the communicator's watch until the deadline. While the GPU runs
// a submission the next one is encoded behind it on the same stream, each with its own event and
// deadline. What cancels the watched work cancels that of both, so both fail.
#ifndef TANDEM_KERNELS_CUDA_CUDA_BACKEND_H_
#define TANDEM_KERNELS_CUDA_CUDA_BACKEND_H_

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/weight_upload.h"

namespace tandem::kernels::cuda {

class CudaBackend : public Backend, public DeviceStream, public GraphCapture, public WeightCopy {
 public:
  explicit CudaBackend(std::string name) : name_(std::move(name)) {}
  ~CudaBackend() override;
  // On the current device: creates the stream, the events, cuBLASLt and its workspace.
  absl::Status Open();

  std::string_view name() const override { return name_; }

  absl::StatusOr<Buffer> Allocate(size_t bytes) override;
  absl::StatusOr<Buffer> AllocateHost(size_t bytes) override;
  absl::StatusOr<Weight> PlaceWeight(const Weight& host) override;
  uint64_t PlacedBytes(const Weight& weight) const override {
    return WeightUpload::PlacedBytes(weight);
  }
  std::optional<DeviceMemory> Memory() override;

  void PoisonBetweenSteps(std::span<std::byte> memory) override;

  uint32_t max_in_flight() const override { return kMaxInFlight; }
  void BeginEncode(EncodeMode mode) override;
  absl::StatusOr<size_t> FinishPlan() override;
  absl::StatusOr<Ticket> Submit(Deadline deadline) override;
  absl::Status Wait(Ticket ticket) override;
  bool Done(Ticket ticket) override;
  absl::Status Broken() const override { return broken_; }

  void Upload(void* device, const void* host, size_t bytes) override;
  void Download(void* host, const void* device, size_t bytes) override;

  void Encode(const Op& op) override;

  HostStream* host_stream() override { return nullptr; }
  DeviceStream* device_stream() override { return this; }
  GraphCapture* graphs() override { return this; }
  WeightCopy* weight_copy() override { return this; }

  // --- DeviceStream ---
  void* handle() override { return stream_.handle(); }
  void SetWatch(StreamWatch* watch) override { watch_ = watch; }
  void NoteError(const absl::Status& error) override;

  // --- GraphCapture ---
  absl::StatusOr<std::unique_ptr<Graph>> Finish() override;
  void Replay(const Graph& graph) override;
  uint64_t PlannedNodes() const override { return stream_.planned_nodes(); }

  // --- WeightCopy ---
  void OnCopied(std::function<void(std::span<const std::byte> part)> copied) override;

 protected:
  Stream& stream() { return stream_; }

 private:
  // Enough for the GPU never to wait for the host; more would only lengthen a step's way.
  static constexpr uint32_t kMaxInFlight = 2;

  enum class Phase { kIdle, kEncoding, kPlanning, kCapturing };

  struct Submission {
    uint64_t number = 0;
    cudaEvent_t mark = nullptr;  // its end on the stream
    Deadline deadline;           // counts once it is the oldest
    Duration time{};             // that it has from then on
    absl::Status error{};        // of one in flight with it
  };

  absl::Status EncodingError() const;
  absl::Status ReserveScratch(size_t bytes);
  bool IsOldest(Ticket ticket) const;
  // Why the stream is not to be waited for any longer, if it is not.
  absl::Status GiveUp(Deadline deadline);
  // Blocks until the stream reaches the mark. Where there is a `reason` to give up, or one comes,
  // cancels watched work and lets the stream drain.
  absl::Status WaitForMark(cudaEvent_t mark, Deadline deadline, absl::Status reason = {});
  // The first reason stays.
  void FailInFlight(const absl::Status& reason);

  const std::string name_;
  Phase phase_ = Phase::kIdle;
  Stream stream_;
  std::array<cudaEvent_t, kMaxInFlight> marks_{};  // of submissions, in turn
  cudaEvent_t zeroed_ = nullptr;                   // end of an allocation's zeroing
  uint64_t last_number_ = 0;
  std::deque<Submission> in_flight_;  // oldest first
  std::unique_ptr<DenseGemm> gemm_;
  std::unique_ptr<WeightUpload> upload_;
  std::vector<Buffer> weights_;
  Buffer scratch_;
  // Shared with graphs: their number is its use count less one.
  const std::shared_ptr<const bool> graphs_ = std::make_shared<const bool>(true);
  std::optional<std::span<std::byte>> poisoned_;
  StreamWatch* watch_ = nullptr;
  absl::Status noted_;   // while encoding, by a communicator
  absl::Status broken_;  // set once the stream is unusable for good
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_CUDA_BACKEND_H_
