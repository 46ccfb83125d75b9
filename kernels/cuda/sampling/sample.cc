// Sample: several blocks per row, two launches whatever the rows want, as their parameters are read
// on the device.
//
// Adjusted logits and weights, exp((logit - largest) / temperature), are bit-identical to the
// host's, in scratch. Sums are in double, so the id equals the host's except for rounding at
// boundaries.
#include <cstddef>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/sampling/sample_kernels.h"
#include "kernels/cuda/sampling/sample_task.h"
#include "kernels/cuda/sampling/scratch_cursor.h"
#include "kernels/cuda/sampling/vocabulary.h"

namespace tandem::kernels::cuda {
namespace {

size_t PlaceScratch(SampleTask& task, std::byte* scratch) {
  const size_t rows = task.params.count;
  ScratchCursor cursor(scratch);
  cursor.Take(task.weights, rows * task.groups * kGroupIds);
  cursor.Take(task.maxima, rows * task.groups);
  cursor.Take(task.bests, rows * task.cut.pieces);
  cursor.Take(task.sums, rows * task.cut.pieces);
  cursor.Take(task.moments, rows * task.cut.pieces);
  cursor.Take(task.bins, rows);
  cursor.Take(task.arrived, rows);
  return cursor.used();
}

template <uint32_t kThreads>
void Encode(Stream& stream, const SampleParams& params) {
  SampleTask task = {};
  task.params = params;
  task.cut = CutRows(stream, params.count, params.vocab, kThreads);
  task.groups = Blocks(params.vocab, kGroupIds);
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
