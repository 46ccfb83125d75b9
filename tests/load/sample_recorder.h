// SampleRecorder: records the sample of one request of a run, and what its client does meanwhile.
#ifndef TANDEM_TESTS_LOAD_SAMPLE_RECORDER_H_
#define TANDEM_TESTS_LOAD_SAMPLE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "tests/load/backend.h"
#include "tests/load/request.h"
#include "tests/load/run_record.h"
#include "tests/load/sample.h"

namespace tandem::load {

// What a recorder needs of its run. Called on the thread that calls the recorder.
class RecordedRun {
 public:
  virtual ~RecordedRun() = default;
  virtual double Now() const = 0;  // seconds from its start
  virtual void OnRequestTokens(uint32_t num_tokens) = 0;
  // The recorder's last call. OK for a request that was cancelled on purpose, however it ended.
  virtual void OnRequestEnd(const absl::Status& status) = 0;
};

class SampleRecorder final : public AnswerListener {
 public:
  // Of a request that is being sent. All are borrowed.
  SampleRecorder(RecordedRun& run, const LoadRequest& request, double intended_s);

  Next OnTokens(uint32_t num_tokens) override;
  void OnEnd(const absl::Status& status, const ServerUsage& usage) override;

  Sample& sample() { return sample_; }

 private:
  Outcome Judge(const absl::Status& status) const;

  RecordedRun& run_;
  const LoadRequest& request_;
  Sample sample_;
  bool cancelled_ = false;
};

// Moves the samples of all requests that were sent, of `num_requests`, to the record.
void CollectSamples(std::deque<SampleRecorder>& recorders, size_t num_requests, RunRecord& record);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SAMPLE_RECORDER_H_
