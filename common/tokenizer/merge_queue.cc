#include "common/tokenizer/merge_queue.h"

#include <algorithm>
#include <functional>

namespace tandem::tokenizer {
namespace {

uint64_t Pack(uint32_t high, uint32_t low) { return static_cast<uint64_t>(high) << 32 | low; }

template <typename T>
void PushMin(std::vector<T>* heap, T value) {
  heap->push_back(value);
  std::push_heap(heap->begin(), heap->end(), std::greater<>());
}

template <typename T>
T PopMin(std::vector<T>* heap) {
  std::pop_heap(heap->begin(), heap->end(), std::greater<>());
  const T value = heap->back();
  heap->pop_back();
  return value;
}

}  // namespace

void MergeQueue::Bucket::Add(uint32_t position) {
  if (run_.empty() || position >= run_.back()) {
    run_.push_back(position);
  } else if (!begun_) {
    run_.push_back(position);
    ascending_ = false;
  } else {
    PushMin(&late_, position);
  }
}

uint32_t MergeQueue::Bucket::Take() {
  if (!begun_) {
    if (!ascending_) std::sort(run_.begin(), run_.end());
    begun_ = true;
  }
  const bool from_run = next_ < run_.size() && (late_.empty() || run_[next_] <= late_.front());
  const uint32_t position = from_run ? run_[next_++] : PopMin(&late_);
  if (next_ == run_.size()) {
    run_.clear();
    next_ = 0;
    if (late_.empty()) Clear();
  }
  return position;
}

void MergeQueue::Bucket::Clear() {
  run_.clear();
  late_.clear();
  next_ = 0;
  ascending_ = true;
  begun_ = false;
}

void MergeQueue::Start(size_t symbols) {
  heap_.clear();
  for (const uint64_t packed : ranks_) buckets_[static_cast<uint32_t>(packed)].Clear();
  ranks_.clear();
  long_ = symbols >= kLongWord;
}

uint32_t MergeQueue::SlotOf(uint32_t rank) {
  const auto [it, is_new] = slot_of_rank_.try_emplace(rank, static_cast<uint32_t>(buckets_.size()));
  if (is_new) buckets_.emplace_back();
  return it->second;
}

void MergeQueue::Push(Item item) {
  if (!long_) {
    PushMin(&heap_, Pack(item.rank, item.position));
    return;
  }
  const uint32_t slot = SlotOf(item.rank);
  Bucket& bucket = buckets_[slot];
  if (bucket.empty()) PushMin(&ranks_, Pack(item.rank, slot));
  bucket.Add(item.position);
}

MergeQueue::Item MergeQueue::Pop() {
  if (!long_) {
    const uint64_t packed = PopMin(&heap_);
    return {static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)};
  }
  const uint64_t best = ranks_.front();
  Bucket& bucket = buckets_[static_cast<uint32_t>(best)];
  const uint32_t position = bucket.Take();
  if (bucket.empty()) PopMin(&ranks_);
  return {static_cast<uint32_t>(best >> 32), position};
}

}  // namespace tandem::tokenizer
