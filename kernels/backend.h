// Backend: memory, one stream, and ops that are encoded on it as values (kernels/op.h). The seam
// between a worker and a kind of device.
//
// A step runs as ENCODE (BeginEncode and Encode calls: nothing blocks) -> SUBMIT (the stream
// starts; gives a ticket) -> WAIT for the ticket (the only place that blocks). A device takes the
// next submission while it runs the one before (max_in_flight); its stream runs them in order. A
// plan pass is the same encoding with EncodeMode::kPlan: ops only count the scratch that they need,
// and FinishPlan allocates it once, so that nothing on the step path allocates.
//
// Ops never fail while encoding: the caller is responsible for shapes (TANDEM_CHECK), and
// unsupported types are rejected by PlaceWeight. Execution errors are returned by Wait. One thread
// uses a backend; aborting is up to communicators. Implementations: reference (scalar truth,
// activations stay F32), cpu (SIMD), cuda.
#ifndef TANDEM_KERNELS_BACKEND_H_
#define TANDEM_KERNELS_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "kernels/op.h"

namespace tandem::kernels {

// Device memory, freed on destruction. Movable.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, size_t bytes, std::function<void(void*)> free)
      : data_(data, std::move(free)), bytes_(bytes) {}

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, std::function<void(void*)>> data_{nullptr, [](void*) {}};
  size_t bytes_ = 0;
};

// kCapture: as kRun, but the work becomes a Graph instead of being run.
enum class EncodeMode { kRun, kPlan, kCapture };

// A list of host work in stream order: how CPU communicators enqueue collectives. `work` runs once,
// on one of the stream's threads, after everything encoded before it and before everything after
// it; it gets the step's deadline.
class HostStream {
 public:
  virtual ~HostStream() = default;
  virtual void Enqueue(std::function<absl::Status(Deadline)> work) = 0;
};

// Watches work that a device's stream may never finish: collectives with a peer that died. Set by a
// communicator, polled by Backend::Wait and Done.
class StreamWatch {
 public:
  virtual ~StreamWatch() = default;
  // An error ends the wait, and may have cancelled work of everything in flight.
  virtual absl::Status Check() = 0;
  // A step failed with `reason` while work was enqueued: cancels that work, so that the stream
  // drains. May be called again.
  virtual void Cancel(const absl::Status& reason) = 0;
};

// A device's stream, for communicators that enqueue collectives on it.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // The cudaStream_t.
  virtual void* handle() = 0;
  // Null: none. The watch must outlive its use.
  virtual void SetWatch(StreamWatch* watch) = 0;
  // Reports an error of enqueuing, by which work in flight may be cancelled too; Submit returns the
  // first one.
  virtual void NoteError(const absl::Status& error) = 0;
};

// What a capture recorded, to be run again with the same pointers and shapes.
class Graph {
 public:
  virtual ~Graph() = default;
};

// Graphs of a device: BeginEncode(kCapture), ops, Finish; then Replay in later encodings.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;
  // Ends a capture. The graph is uploaded: its first replay is as fast as any.
  virtual absl::StatusOr<std::unique_ptr<Graph>> Finish() = 0;
  // Runs a captured graph, in stream order, also one that is in flight. It must outlive Wait.
  virtual void Replay(const Graph& graph) = 0;
  // Nodes that graphs of the plan pass's ops so far would have.
  virtual uint64_t PlannedNodes() const = 0;
};

// A backend that copies weights.
class WeightCopy {
 public:
  virtual ~WeightCopy() = default;
  // PlaceWeight calls `copied` with each part of the host's weight that it has copied, so that a
  // mapped file's pages can be released. Empty: stop calling.
  virtual void OnCopied(std::function<void(std::span<const std::byte> part)> copied) = 0;
};

// Memory of a device.
struct DeviceMemory {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  // at present, excluding other programs' use
};

// A submission of one backend.
struct Ticket {
  uint64_t number = 0;
};

class Backend {
 public:
  // REQUIRES: nothing is in flight. A device waits for what is.
  virtual ~Backend() = default;

  // For logs: "reference", "cpu-avx512", ...
  virtual std::string_view name() const = 0;

  // --- memory (never between ENCODE and WAIT, nor with a submission in flight) ---
  // Zeroed memory, 64-byte aligned. RESOURCE_EXHAUSTED with the size when there is none.
  virtual absl::StatusOr<Buffer> Allocate(size_t bytes) = 0;
  // Places a weight from host memory that outlives the backend (the mapped file); if weight_copy()
  // is not null, a weight for products or heads has to outlive only this call, but for its scales.
  // UNIMPLEMENTED for an unsupported type, or for scales that the backend cannot apply.
  virtual absl::StatusOr<Weight> PlaceWeight(const Weight& host) = 0;
  // Memory that the backend's form of a weight takes, before or after it is placed; by default what
  // the file has of it, which leaves out the padding of panels.
  virtual uint64_t PlacedBytes(const Weight& weight) const;
  // Zeroed host memory from which and to which copies need no staging (page-locked, for a device).
  virtual absl::StatusOr<Buffer> AllocateHost(size_t bytes) = 0;
  // Whether pages of this shape are to have `k_columns`.
  virtual bool WantsKeyColumns(const KvPages& shape) const;
  // Memory of the device used by Allocate; none if that is host memory.
  virtual std::optional<DeviceMemory> Memory() { return std::nullopt; }

  // --- activations ---
  // From here on activations of ops are of `type`, whatever the C++ type of their pointers; until
  // then F32. UNIMPLEMENTED, naming both, for a type that ops can't compute with: all but F32,
  // unless a backend says otherwise. Logits, router scores and parameters stay F32.
  virtual absl::Status UseActivations(tensor::Type type);

  // --- for tests ---
  // From here on every step begins with `memory`, and with kernels' scratch, set to bytes 0xff: NaN
  // as floats, so that what a step reads of an earlier one shows. Only devices do it.
  virtual void PoisonBetweenSteps(std::span<std::byte> memory);

  // --- phases ---
  // How many submissions may be in flight: submitted, and not waited for. One where encoding needs
  // the threads that compute.
  virtual uint32_t max_in_flight() const { return 1; }
  // REQUIRES: fewer than max_in_flight() submissions in flight, and none for a plan or a capture.
  virtual void BeginEncode(EncodeMode mode) = 0;
  // Ends a plan pass: reserves the largest scratch that any op of it needed and returns its bytes.
  // FAILED_PRECONDITION if it would have to move scratch that graphs point into.
  virtual absl::StatusOr<size_t> FinishPlan() = 0;
  // Starts what was encoded, behind what is in flight; returns at once. `deadline` bounds every
  // collective in the list and Wait; what was behind another submission has as much time again from
  // when that one was waited for. After an error of encoding, none of it is in flight.
  virtual absl::StatusOr<Ticket> Submit(Deadline deadline) = 0;
  // Blocks until the oldest submission in flight, which `ticket` is for, is done: the first error
  // of any of its ops, or DEADLINE_EXCEEDED. Those in flight behind it then fail with the same
  // error, as they may have read what it did not compute; what is submitted afterwards does not.
  virtual absl::Status Wait(Ticket ticket) = 0;
  // Whether the oldest submission is over, or Wait would give it up. Never blocks. A backend that
  // takes one submission need not know: true.
  virtual bool Done(Ticket ticket);
  // Submit and Wait.
  absl::Status SubmitAndWait(Deadline deadline);
  // Not OK once the device takes no more work, for good. Freeing its memory may then wait for ever:
  // the process has to leave it behind.
  virtual absl::Status Broken() const { return absl::OkStatus(); }

  // --- copies, in stream order; host memory (best of AllocateHost) must stay valid, and what is
  // uploaded unchanged, until Wait ---
  virtual void Upload(void* device, const void* host, size_t bytes) = 0;
  virtual void Download(void* host, const void* device, size_t bytes) = 0;

  // --- ops ---
  // Appends one op. `op` may be destroyed afterwards, the arrays it points to may not.
  virtual void Encode(const Op& op) = 0;

  // The host's stream, for communicators that run on the CPU; null if the stream is a device's.
  virtual HostStream* host_stream() = 0;

  // Null: weights stay where they are.
  virtual WeightCopy* weight_copy() { return nullptr; }

  // --- only on devices; null elsewhere ---
  virtual DeviceStream* device_stream() { return nullptr; }
  virtual GraphCapture* graphs() { return nullptr; }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_BACKEND_H_
