// LogProbs: several blocks per row read its pieces, then one block per row writes the results; two
// launches, as a row's last block would have to be counted in memory that a launch had cleared.
#include <cstddef>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/sampling/log_probs_kernels.h"
#include "kernels/cuda/sampling/log_probs_task.h"
#include "kernels/cuda/sampling/scratch_cursor.h"
#include "kernels/cuda/sampling/vocabulary.h"

namespace tandem::kernels::cuda {
namespace {

size_t PlaceScratch(LogProbsTask& task, std::byte* scratch) {
  const size_t pieces = size_t{task.params.count} * task.cut.pieces;
  ScratchCursor cursor(scratch);
  cursor.Take(task.sums, pieces);
  cursor.Take(task.tops, pieces * kMaxTopLogprobs);
  cursor.Take(task.larger, size_t{task.params.out_count} * task.cut.pieces);
  return cursor.used();
}

template <uint32_t kThreads>
void Encode(Stream& stream, const LogProbsParams& params) {
  LogProbsTask task = {};
  task.params = params;
  task.cut = CutRows(stream, params.count, params.vocab, kThreads);
  PlaceScratch(task, stream.Scratch(PlaceScratch(task, nullptr)));
  EncodeReadPieces<kThreads>(stream, task);
  EncodeWriteLogProbs<kThreads>(stream, task);
}

}  // namespace

void EncodeOp(Stream& stream, const LogProbsParams& params) {
  if (!CheckVocabulary(stream, params.vocab, kMostVocabulary)) return;
  params.vocab <= kSmallVocabulary ? Encode<kFewVocabularyThreads>(stream, params)
                                   : Encode<kManyVocabularyThreads>(stream, params);
}

}  // namespace tandem::kernels::cuda
