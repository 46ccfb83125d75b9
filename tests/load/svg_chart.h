// Charts as SVG text, to stand in an HTML page: no script, no network. Points and bars say their
// values when the pointer is over them.
#ifndef TANDEM_TESTS_LOAD_SVG_CHART_H_
#define TANDEM_TESTS_LOAD_SVG_CHART_H_

#include <string>
#include <utility>
#include <vector>

namespace tandem::load {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct ChartText {
  std::string title;
  std::string x_label;
  std::string y_label;
};

// Both axes begin at 0. Points are joined in their order; the series are told apart by colour and
// a legend. A chart without a point says so.
std::string LineChart(const ChartText& text, const std::vector<Series>& series);

// The counts of `values` in equal bins from 0 to their largest.
std::string Histogram(const ChartText& text, const std::vector<double>& values);

// 1, 2 or 5 times a power of ten: the distance of at most `most` marks over [0, `end`].
double TickStep(double end, int most);

// For text and attributes of HTML and SVG.
std::string EscapeHtml(const std::string& text);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SVG_CHART_H_
