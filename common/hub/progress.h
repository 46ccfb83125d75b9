// Progress: how far a fetch is, on stderr: one line that is rewritten on a terminal, log lines
// otherwise.
#ifndef TANDEM_COMMON_HUB_PROGRESS_H_
#define TANDEM_COMMON_HUB_PROGRESS_H_

#include <cstdint>
#include <string>

#include "common/base/clock.h"

namespace tandem::hub {

// One thread.
class Progress {
 public:
  // Of a file's `total_bytes`, `done_bytes` have been there before.
  Progress(const std::string& name, uint64_t done_bytes, uint64_t total_bytes);
  // Ends the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Prints at most twice a second on a terminal, every ten seconds in a log.
  void Update(uint64_t done_bytes);
  // Leaves the line, before something else is printed.
  void EndLine();

 private:
  void Print(uint64_t done_bytes);

  const std::string name_;
  const uint64_t start_bytes_;
  const uint64_t total_bytes_;
  const bool terminal_;
  const TimePoint start_;
  TimePoint next_;
  uint64_t last_bytes_;
};

// "m.gguf: 1.2 GiB of 4.9 GiB (24%), 34 MiB/s, 1:50 left"; without the rest if no time has passed.
std::string ProgressText(const std::string& name, uint64_t start_bytes, uint64_t done_bytes,
                         uint64_t total_bytes, Duration elapsed);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_PROGRESS_H_
