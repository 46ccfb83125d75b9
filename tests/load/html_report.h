// The HTML report: one file that opens without a network.
#ifndef TANDEM_TESTS_LOAD_HTML_REPORT_H_
#define TANDEM_TESTS_LOAD_HTML_REPORT_H_

#include <string>
#include <vector>

#include "tests/load/run_result.h"

namespace tandem::load {

// A table of the runs, latency against rate, and of each run histograms of the latencies and a
// timeline of queue, running requests, KV use and tokens per second. `command_line` is shown.
std::string HtmlReport(const std::vector<RunResult>& results, const std::string& command_line);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_HTML_REPORT_H_
