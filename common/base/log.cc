#include "common/base/log.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "common/base/utf8.h"

namespace tandem {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::atomic<LogFormat> g_format{LogFormat::kText};

std::string& Tag() {
  static std::string* tag = new std::string;
  return *tag;
}

const char* NameOf(LogLevel level) {
  constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<int>(level)];
}

char Letter(LogLevel level) { return "DIWE"[static_cast<int>(level)]; }

// "2026-01-31T23:59:59.123Z", with `separator` for the T.
std::string Now(char separator) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char text[64];
  std::snprintf(text, sizeof(text), "%04d-%02d-%02d%c%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, separator, parts.tm_hour, parts.tm_min,
                parts.tm_sec, static_cast<int>(now.tv_nsec / 1000000));
  return text;
}

// `text` as a JSON string, whatever its bytes are.
std::string Quoted(std::string_view text) {
  std::string valid;
  Utf8Stream stream;
  stream.Append(text, &valid);
  stream.Flush(&valid);
  std::string quoted = "\"";
  for (const char c : valid) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

void AddMember(const char* name, std::string_view value, std::string& object) {
  if (value.empty()) return;
  object += std::string(", \"") + name + "\": " + Quoted(value);
}

std::string TextLine(LogLevel level, const LogRequest& request, const std::string& message) {
  std::string line = std::string(1, Letter(level)) + ' ' + Now(' ') + ' ';
  if (!Tag().empty()) line += Tag() + ": ";
  if (!request.id.empty()) line += "request \"" + std::string(request.id) + "\"";
  if (!request.trace_id.empty()) line += ", trace " + std::string(request.trace_id);
  if (!request.id.empty()) line += ": ";
  return line + message;
}

std::string JsonLine(LogLevel level, const LogRequest& request, const std::string& message) {
  std::string line = "{\"time\": \"" + Now('T') + "\", \"level\": \"" + NameOf(level) + '"';
  AddMember("process", Tag(), line);
  AddMember("request_id", request.id, line);
  AddMember("trace_id", request.trace_id, line);
  AddMember("message", message, line);
  return line + '}';
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }
LogLevel GetLogLevel() { return g_level.load(std::memory_order_relaxed); }
void SetLogFormat(LogFormat format) { g_format.store(format, std::memory_order_relaxed); }
void SetLogTag(std::string tag) { Tag() = std::move(tag); }

namespace internal {

LogLine::~LogLine() {
  const bool json = g_format.load(std::memory_order_relaxed) == LogFormat::kJson;
  const std::string line = (json ? JsonLine : TextLine)(level_, request_, stream_.str()) + '\n';
  // A failed write to stderr cannot be reported.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace internal
}  // namespace tandem
