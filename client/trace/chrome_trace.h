// ChromeTrace: a file in Chrome's Trace Event Format, which https://ui.perfetto.dev and
// chrome://tracing open. Times are given in nanoseconds; the file has microseconds.
//
// Format: "Trace Event Format" by the Chromium project
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU). One thread.
#ifndef TANDEM_CLIENT_TRACE_CHROME_TRACE_H_
#define TANDEM_CLIENT_TRACE_CHROME_TRACE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

namespace tandem::client {

class ChromeTrace {
 public:
  using Json = nlohmann::ordered_json;

  // A line of the picture: a thread of a process.
  struct Track {
    int process = 0;
    int thread = 0;
  };
  struct Span {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };

  // `out` must outlive it; its state tells whether everything was written.
  explicit ChromeTrace(std::ostream& out);

  void NameProcess(int process, const std::string& name);
  void NameTrack(Track track, const std::string& name);

  // Slices of one track lie in each other or apart.
  void Slice(Track track, const std::string& name, Span span, const Json& args = {});
  // A moment, on its track, or across all of them.
  void Instant(Track track, const std::string& name, int64_t at_ns, const Json& args,
               bool everywhere = false);
  // An arrow from the slice of one track that is there at a moment to that of another.
  void Arrow(uint64_t id, Track from, int64_t from_ns, Track to, int64_t to_ns);
  // Spans that belong to one thing, such as a request: they nest, and those left open have no end.
  void Begin(int process, uint64_t id, const std::string& name, int64_t at_ns,
             const Json& args = {});
  void End(int process, uint64_t id, const std::string& name, int64_t at_ns, const Json& args = {});

  // Ends the file. `about` is kept as it is, for those who read it.
  void Close(const Json& about);

 private:
  // Of a kind ("ph"), with what all kinds have.
  static Json Event(const char* kind, Track track, const std::string& name, int64_t at_ns,
                    const Json& args);
  void Name(const char* what, Track track, const std::string& name);
  void Write(const Json& event);

  std::ostream& out_;
  bool is_first_ = true;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_TRACE_CHROME_TRACE_H_
