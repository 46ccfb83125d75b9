#include "common/hub/progress.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/model/human_bytes.h"

namespace tandem::hub {
namespace {

constexpr Duration kTerminalInterval = std::chrono::milliseconds(500);
constexpr Duration kLogInterval = std::chrono::seconds(10);

// "1:05" or "2:00:09".
std::string ClockText(uint64_t seconds) {
  const uint64_t hours = seconds / 3600;
  if (hours > 0) return absl::StrFormat("%d:%02d:%02d", hours, seconds / 60 % 60, seconds % 60);
  return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
}

}  // namespace

std::string ProgressText(const std::string& name, uint64_t start_bytes, uint64_t done_bytes,
                         uint64_t total_bytes, Duration elapsed) {
  std::string text = absl::StrFormat(
      "%s: %s of %s (%d%%)", name, model::HumanBytes(done_bytes), model::HumanBytes(total_bytes),
      static_cast<int>(100.0 * static_cast<double>(done_bytes) / static_cast<double>(total_bytes)));
  const double seconds = std::chrono::duration<double>(elapsed).count();
  if (seconds <= 0 || done_bytes <= start_bytes) return text;
  const double rate = static_cast<double>(done_bytes - start_bytes) / seconds;
  absl::StrAppend(&text, ", ", model::HumanBytes(static_cast<uint64_t>(rate)), "/s");
  if (done_bytes < total_bytes) {
    absl::StrAppend(
        &text, ", ",
        ClockText(static_cast<uint64_t>(static_cast<double>(total_bytes - done_bytes) / rate)),
        " left");
  }
  return text;
}

Progress::Progress(const std::string& name, uint64_t done_bytes, uint64_t total_bytes)
    : name_(name),
      start_bytes_(done_bytes),
      total_bytes_(total_bytes),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::System().Now()),
      next_(start_ + (terminal_ ? kTerminalInterval : kLogInterval)),
      last_bytes_(done_bytes) {
  TANDEM_LOG(kInfo) << "fetching " << name << ", " << model::HumanBytes(total_bytes)
                    << (done_bytes > 0 ? absl::StrCat(", of which ", model::HumanBytes(done_bytes),
                                                      " are there")
                                       : "");
}

Progress::~Progress() {
  Print(last_bytes_);
  EndLine();
}

void Progress::EndLine() {
  if (terminal_) [[maybe_unused]]
    const ssize_t written = write(STDERR_FILENO, "\n", 1);
}

void Progress::Update(uint64_t done_bytes) {
  last_bytes_ = done_bytes;
  const TimePoint now = Clock::System().Now();
  if (now < next_) return;
  next_ = now + (terminal_ ? kTerminalInterval : kLogInterval);
  Print(done_bytes);
}

void Progress::Print(uint64_t done_bytes) {
  const std::string text =
      ProgressText(name_, start_bytes_, done_bytes, total_bytes_, Clock::System().Now() - start_);
  if (!terminal_) {
    TANDEM_LOG(kInfo) << text;
    return;
  }
  const std::string line = absl::StrCat("\r", text, "\x1b[K");  // and erase the rest of the line
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace tandem::hub
