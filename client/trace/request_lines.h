// RequestLines: draws requests, each as a span with its phases in it: queue, prefill, decode, and
// again queue where it had to wait again.
#ifndef TANDEM_CLIENT_TRACE_REQUEST_LINES_H_
#define TANDEM_CLIENT_TRACE_REQUEST_LINES_H_

#include <cstdint>
#include <map>
#include <string>

#include "client/trace/chrome_trace.h"
#include "proto/tandem/v1/trace.pb.h"

namespace tandem::client {

// One thread.
class RequestLines {
 public:
  // Spans go to `process`, preemptions also to `moments`; `out` must outlive this.
  RequestLines(int process, ChromeTrace::Track moments, ChromeTrace& out)
      : process_(process), moments_(moments), out_(out) {}

  // In the order of the recording.
  void Take(const v1::RequestChange& change);

 private:
  struct Request {
    std::string name{};
    std::string phase{};  // that it is in
    int64_t at_ns = 0;    // of its last change; nothing goes back behind it
  };

  void Open(const v1::RequestChange& change);
  void Enter(const std::string& phase, uint64_t handle, Request& request);
  void Note(const char* what, const Request& request);

  const int process_;
  const ChromeTrace::Track moments_;
  ChromeTrace& out_;
  std::map<uint64_t, Request> open_;  // by handle
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_TRACE_REQUEST_LINES_H_
