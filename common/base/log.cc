#include "common/base/log.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace tandem {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};

std::string& Tag() {
  static std::string* tag = new std::string;
  return *tag;
}

char Letter(LogLevel level) { return "DIWE"[static_cast<int>(level)]; }

}  // namespace

void SetLogLevel(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }
LogLevel GetLogLevel() { return g_level.load(std::memory_order_relaxed); }
void SetLogTag(std::string tag) { Tag() = std::move(tag); }

namespace internal {

LogLine::~LogLine() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char head[64];
  std::snprintf(head, sizeof(head), "%c %04d-%02d-%02d %02d:%02d:%02d.%03dZ ", Letter(level_),
                parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                parts.tm_sec, static_cast<int>(now.tv_nsec / 1000000));
  std::string line = head;
  if (!Tag().empty()) line += Tag() + ": ";
  line += stream_.str();
  line += '\n';
  // A failed write to stderr cannot be reported.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace internal
}  // namespace tandem
