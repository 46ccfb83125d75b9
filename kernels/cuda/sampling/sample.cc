// Sample: several blocks per row, two launches whatever the rows want, as their parameters are read
// on the device.
//
// Adjusted logits and weights, exp((logit - largest) / temperature), are bit-identical to the
// host's, in scratch. Sums are in double, so the id equals the host's except for rounding at
// boundaries.
#include <algorithm>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/sampling/sample_kernels.h"
#include "kernels/cuda/sampling/sample_task.h"
#include "kernels/cuda/sampling/vocabulary.h"

namespace tandem::kernels::cuda {
namespace {

// The grid has at least so many blocks per multiprocessor, if rows have as many pieces.
constexpr uint32_t kBlocksPerMultiprocessor = 2;

// Hands out parts of an op's scratch one after another, or counts their bytes.
class ScratchCursor {
 public:
  explicit ScratchCursor(std::byte* scratch) : scratch_(scratch) {}

  template <typename T>
  void Take(T*& data, size_t count) {
    if (scratch_ != nullptr) data = reinterpret_cast<T*>(scratch_ + used_);
    used_ += ScratchBytes(count * sizeof(T));
  }
  size_t used() const { return used_; }

 private:
  std::byte* const scratch_;
  size_t used_ = 0;
};

size_t PlaceScratch(SampleTask& task, std::byte* scratch) {
  const size_t rows = task.params.count;
  ScratchCursor cursor(scratch);
  cursor.Take(task.weights, rows * task.groups * kGroupIds);
  cursor.Take(task.maxima, rows * task.groups);
  cursor.Take(task.bests, rows * task.pieces);
  cursor.Take(task.sums, rows * task.pieces);
  cursor.Take(task.bins, rows);
  cursor.Take(task.arrived, rows);
  return cursor.used();
}

template <uint32_t kThreads>
void Encode(Stream& stream, const SampleParams& params) {
  SampleTask task = {};
  task.params = params;
  task.pieces = Blocks(params.vocab, kThreads * kIdsPerThread);
  task.groups = Blocks(params.vocab, kGroupIds);
  const uint32_t wanted = Blocks(uint64_t{kBlocksPerMultiprocessor} * stream.multiprocessors(),
                                 std::max(params.count, 1u));
  task.parts = std::max(std::min(wanted, task.pieces), 1u);
  PlaceScratch(task, stream.Scratch(PlaceScratch(task, nullptr)));
  EncodeFindLargest<kThreads>(stream, task);
  EncodeDrawIds<kThreads>(stream, task);
}

}  // namespace

void EncodeOp(Stream& stream, const SampleParams& params) {
  if (!CheckVocabulary(stream, params.vocab, kMostVocabulary)) return;
  params.vocab <= kSmallVocabulary ? Encode<kFewVocabularyThreads>(stream, params)
                                   : Encode<kManyVocabularyThreads>(stream, params);
}

}  // namespace tandem::kernels::cuda
