#include "client/trace/chrome_trace.h"

namespace tandem::client {
namespace {

using Json = ChromeTrace::Json;

constexpr char kArrows[] = "step";  // the category of arrows, and that of spans
constexpr char kSpans[] = "request";

double Micros(int64_t ns) { return static_cast<double>(ns) / 1000; }

// Names and arguments come from clients, and may be of any bytes.
std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

ChromeTrace::ChromeTrace(std::ostream& out) : out_(out) { out_ << "{\"traceEvents\":["; }

void ChromeTrace::Close(const Json& about) {
  out_ << "\n],\"displayTimeUnit\":\"ms\",\"otherData\":" << Text(about) << "}\n";
  out_.flush();
}

Json ChromeTrace::Event(const char* kind, Track track, const std::string& name, int64_t at_ns,
                        const Json& args) {
  Json event = {{"ph", kind},
                {"pid", track.process},
                {"tid", track.thread},
                {"name", name},
                {"ts", Micros(at_ns)}};
  if (!args.is_null()) event["args"] = args;
  return event;
}

void ChromeTrace::Write(const Json& event) {
  out_ << (is_first_ ? "\n" : ",\n") << Text(event);
  is_first_ = false;
}

void ChromeTrace::Name(const char* what, Track track, const std::string& name) {
  Write({{"ph", "M"},
         {"pid", track.process},
         {"tid", track.thread},
         {"name", what},
         {"args", {{"name", name}}}});
}

void ChromeTrace::NameProcess(int process, const std::string& name) {
  Name("process_name", {.process = process}, name);
}

void ChromeTrace::NameTrack(Track track, const std::string& name) {
  Name("thread_name", track, name);
}

void ChromeTrace::Slice(Track track, const std::string& name, Span span, const Json& args) {
  Json event = Event("X", track, name, span.begin_ns, args);
  event["dur"] = Micros(span.end_ns - span.begin_ns);
  Write(event);
}

void ChromeTrace::Instant(Track track, const std::string& name, int64_t at_ns, const Json& args,
                          bool everywhere) {
  Json event = Event("i", track, name, at_ns, args);
  event["s"] = everywhere ? "g" : "t";
  Write(event);
}

void ChromeTrace::Arrow(uint64_t id, Track from, int64_t from_ns, Track to, int64_t to_ns) {
  Json begin = Event("s", from, "step", from_ns, {});
  begin["cat"] = kArrows;
  begin["id"] = id;
  Write(begin);
  Json end = Event("f", to, "step", to_ns, {});
  end["cat"] = kArrows;
  end["id"] = id;
  end["bp"] = "e";  // to the slice around it
  Write(end);
}

void ChromeTrace::Begin(int process, uint64_t id, const std::string& name, int64_t at_ns,
                        const Json& args) {
  Json event = Event("b", {.process = process}, name, at_ns, args);
  event["cat"] = kSpans;
  event["id"] = id;
  Write(event);
}

void ChromeTrace::End(int process, uint64_t id, const std::string& name, int64_t at_ns,
                      const Json& args) {
  Json event = Event("e", {.process = process}, name, at_ns, args);
  event["cat"] = kSpans;
  event["id"] = id;
  Write(event);
}

}  // namespace tandem::client
