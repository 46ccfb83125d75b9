#include "coordinator/api/tokenizer_pool.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {
namespace {

constexpr int kShortThreads = 2;

}  // namespace

TokenizerPool::TokenizerPool(const Limits& limits)
    : limits_(limits), short_(limits.short_jobs), long_(limits.long_jobs) {
  threads_.emplace_back([this] { Work(long_); });
  for (int i = 0; i < kShortThreads; ++i) threads_.emplace_back([this] { Work(short_); });
}

TokenizerPool::~TokenizerPool() {
  short_.Close();
  long_.Close();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status TokenizerPool::Run(size_t bytes, Job job) {
  const bool is_short = bytes <= limits_.short_text_bytes;
  if ((is_short ? short_ : long_).TryPush(std::move(job))) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the tokenizer's queue is full: ", is_short ? limits_.short_jobs : limits_.long_jobs,
      " texts of ", is_short ? "at most " : "more than ", limits_.short_text_bytes, " bytes wait"));
}

void TokenizerPool::Work(BoundedQueue<Job>& jobs) {
  while (true) {
    const bool closed = jobs.closed();  // then no job is added any more
    if (std::optional<Job> job = jobs.Pop(Deadline::After(std::chrono::minutes(1)))) {
      (*job)();
    } else if (closed) {
      return;
    }
  }
}

}  // namespace tandem::coordinator
