// OpList: what ENCODE records on the CPU. Every op is a number of independent tasks, divided among
// the stream's threads.
//
// A kernel encodes one op call as one or more entries; entries run one after the other, all tasks
// of one before any of the next. Parameters are copied, so the caller's may be destroyed. Nothing
// is allocated once the list has held its longest step.
//
//   list.ReserveScratch(shared_bytes, per_thread_bytes);  // once per op call, plan pass included
//   list.Add("norm", num_tasks, &RunNorm, NormTask{...});  // void RunNorm(const NormTask&,
//                                                          //              const TaskContext&)
//
// A plan pass (planning()) records only scratch: Add does nothing. One thread records; ThreadStream
// runs.
#ifndef TANDEM_KERNELS_HOST_OP_LIST_H_
#define TANDEM_KERNELS_HOST_OP_LIST_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "kernels/backend.h"
#include "kernels/host/task.h"

namespace tandem::kernels::host {

// Scratch of one op call.
struct ScratchSize {
  size_t shared = 0;
  size_t per_thread = 0;  // a multiple of 64, so that threads never share a cache line
};

// Not thread-safe: one thread records, then the stream only reads.
class OpList {
 public:
  using Work = std::function<absl::Status(Deadline)>;

  // One entry. Exactly one of run and work is set.
  struct Entry {
    const char* name;
    void (*run)(const void* params, const TaskContext& context);
    uint32_t num_tasks;
    uint32_t payload;  // parameters: index into units_; work: index into works_
  };

  explicit OpList(uint32_t threads) : threads_(threads) {}

  uint32_t threads() const { return threads_; }
  bool planning() const { return mode_ == EncodeMode::kPlan; }

  // Removes all entries, keeps the memory.
  void Clear(EncodeMode mode);

  // Appends an op of `num_tasks` tasks, each `run(params, context)` on some thread. No tasks: no
  // entry. `name` is a literal.
  template <typename Params>
  void Add(const char* name, uint32_t num_tasks,
           void (*run)(const std::type_identity_t<Params>&, const TaskContext&),
           const Params& params) {
    struct Bound {
      Params params;
      void (*run)(const Params&, const TaskContext&);
    };
    static_assert(std::is_trivially_copyable_v<Bound> && alignof(Bound) <= alignof(Unit));
    if (planning() || num_tasks == 0) return;
    const uint32_t at = Grow(sizeof(Bound));
    new (&units_[at]) Bound{params, run};
    entries_.push_back({name,
                        [](const void* bound, const TaskContext& context) {
                          const auto& b = *static_cast<const Bound*>(bound);
                          b.run(b.params, context);
                        },
                        num_tasks, at});
  }

  // Appends host work that one thread runs and that may fail: collectives.
  void AddWork(const char* name, Work work);

  // Reserves scratch for the op call being encoded.
  void ReserveScratch(size_t shared_bytes, size_t per_thread_bytes);

  // --- for the stream ---
  const std::vector<Entry>& entries() const { return entries_; }
  const void* params(const Entry& entry) const { return &units_[entry.payload]; }
  const Work& work(const Entry& entry) const { return works_[entry.payload]; }
  // The largest of all ReserveScratch since Clear.
  ScratchSize scratch() const { return scratch_; }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };

  // Room for `bytes`; the index of its first unit.
  uint32_t Grow(size_t bytes);

  const uint32_t threads_;
  EncodeMode mode_ = EncodeMode::kRun;
  std::vector<Entry> entries_;
  std::vector<Unit> units_;
  std::vector<Work> works_;
  ScratchSize scratch_;
};

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_OP_LIST_H_
