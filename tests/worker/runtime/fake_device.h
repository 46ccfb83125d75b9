// FakeDevice: a device for the worker's tests, made of the reference backend: ops give the same
// bits, and everything around them is a device's.
//
// Device memory can't be touched by the host: its pages are open only while Wait runs the stream,
// so a read or write anywhere else ends the test. Weights are copied. Copies and launches are
// noted. Graphs work: a capture keeps the ops, Replay encodes them again. Collectives go through
// host_stream() and belong to a capture like ops. Two submissions may be in flight; each runs in
// its Wait, copies included, so that what is staged or encoded for one must leave the other alone.
#ifndef TANDEM_TESTS_WORKER_RUNTIME_FAKE_DEVICE_H_
#define TANDEM_TESTS_WORKER_RUNTIME_FAKE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "kernels/backend.h"

namespace tandem::worker {

// What a fake device did; outlives it.
struct FakeDeviceNotes {
  struct Copy {
    size_t bytes = 0;
    bool page_locked = false;  // the host's side is of AllocateHost
  };
  std::vector<Copy> uploads;
  std::vector<Copy> downloads;
  uint64_t ops = 0;                   // encoded by the caller, to run
  std::set<uint32_t> planned_tokens;  // of steps that plan passes have encoded
  uint64_t captures = 0;              // finished
  uint64_t replays = 0;
  uint64_t allocated_bytes = 0;
  uint64_t weight_bytes = 0;         // copied by PlaceWeight
  uint64_t weight_rows = 0;          // likewise
  std::vector<std::string> calls;    // "submit N" and "wait N", N the ticket's number
  std::vector<TimePoint> deadlines;  // of submissions
  absl::Status broken;               // set by a test; not OK: what Submit answers
  absl::Status broken_wait;          // likewise Wait, when the stream is done
  std::function<bool()> busy;        // set by a test; true: the oldest submission is not done

  void Clear() { *this = {}; }
};

struct FakeDeviceOptions {
  bool graphs = true;
  bool blocks_in_submit = false;  // detected by the step guard
  uint64_t row_padding = 0;       // bytes, that PlacedBytes counts
  kernels::DeviceMemory memory{.total_bytes = uint64_t{1} << 30, .free_bytes = uint64_t{1} << 30};
};

std::unique_ptr<kernels::Backend> MakeFakeDevice(const FakeDeviceOptions& options,
                                                 std::shared_ptr<FakeDeviceNotes> notes);

// Registers a fake device as "cuda" for all models loaded in this process.
void RegisterFakeDevice(const FakeDeviceOptions& options, std::shared_ptr<FakeDeviceNotes> notes);

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_RUNTIME_FAKE_DEVICE_H_
