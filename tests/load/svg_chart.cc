#include "tests/load/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem::load {
namespace {

constexpr double kWidth = 560, kHeight = 260;
constexpr double kLeft = 62, kRight = 12, kTop = 44, kBottom = 40;
constexpr const char* kColours[] = {"#1f6feb", "#d1570c", "#1a7f37",
                                    "#8250df", "#bf3989", "#57606a"};
constexpr int kMaxTicks = 6;
constexpr size_t kBins = 40;
constexpr size_t kMostDots = 120;  // of a series; more would cover the line

// From data to the picture.
struct Frame {
  double x_end;
  double y_end;

  double X(double x) const { return kLeft + (kWidth - kLeft - kRight) * x / x_end; }
  double Y(double y) const { return kHeight - kBottom - (kHeight - kTop - kBottom) * y / y_end; }
};

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

void AppendText(double x, double y, const char* anchor, const std::string& text, std::string& svg) {
  absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", x, y,
                        anchor, EscapeHtml(text));
}

void AppendLine(double x1, double y1, double x2, double y2, std::string& svg) {
  absl::StrAppendFormat(&svg,
                        "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
                        x1, y1, x2, y2);
}

void AppendAxes(const ChartText& text, const Frame& frame, std::string& svg) {
  const double x_step = TickStep(frame.x_end, kMaxTicks);
  for (double x = 0; x <= frame.x_end * 1.0001; x += x_step) {
    AppendLine(frame.X(x), kTop, frame.X(x), kHeight - kBottom, svg);
    AppendText(frame.X(x), kHeight - kBottom + 14, "middle", Number(x), svg);
  }
  const double y_step = TickStep(frame.y_end, kMaxTicks);
  for (double y = 0; y <= frame.y_end * 1.0001; y += y_step) {
    AppendLine(kLeft, frame.Y(y), kWidth - kRight, frame.Y(y), svg);
    AppendText(kLeft - 5, frame.Y(y) + 4, "end", Number(y), svg);
  }
  AppendText((kLeft + kWidth - kRight) / 2, kHeight - 6, "middle", text.x_label, svg);
  absl::StrAppendFormat(&svg, "<text class=\"title\" x=\"%.1f\" y=\"14\">%s</text>", 4.0,
                        EscapeHtml(text.title));
  AppendText(4, 32, "start", text.y_label, svg);
}

std::string Begin() {
  return absl::StrFormat(
      "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "role=\"img\">",
      kWidth, kHeight, kWidth, kHeight);
}

std::string Empty(const ChartText& text) {
  std::string svg = Begin();
  AppendText(4, 14, "start", text.title, svg);
  AppendText(kWidth / 2, kHeight / 2, "middle", "no data", svg);
  return svg + "</svg>\n";
}

void AppendSeries(const Series& series, const Frame& frame, const char* colour, std::string& svg) {
  absl::StrAppendFormat(&svg, "<polyline fill=\"none\" stroke=\"%s\" points=\"", colour);
  for (const auto& [x, y] : series.points) {
    absl::StrAppendFormat(&svg, "%.1f,%.1f ", frame.X(x), frame.Y(y));
  }
  absl::StrAppend(&svg, "\"/>");
  if (series.points.size() > kMostDots) return;
  for (const auto& [x, y] : series.points) {
    absl::StrAppendFormat(
        &svg,
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s: %s at %s</title>"
        "</circle>",
        frame.X(x), frame.Y(y), colour, EscapeHtml(series.name), Number(y), Number(x));
  }
}

void AppendLegend(const std::vector<Series>& series, std::string& svg) {
  double x = kWidth - kRight;
  for (size_t i = series.size(); i-- > 0;) {
    AppendText(x, 32, "end", series[i].name, svg);
    x -= 7.0 * static_cast<double>(series[i].name.size()) + 14;
    absl::StrAppendFormat(&svg, "<rect x=\"%.1f\" y=\"24\" width=\"9\" height=\"9\" fill=\"%s\"/>",
                          x, kColours[i % std::size(kColours)]);
    x -= 8;
  }
}

}  // namespace

double TickStep(double end, int most) {
  const double power = std::pow(10, std::floor(std::log10(end / most)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (end / (factor * power) <= most) return factor * power;
  }
  return 10 * power;
}

std::string EscapeHtml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string LineChart(const ChartText& text, const std::vector<Series>& series) {
  Frame frame{0, 0};
  for (const Series& one : series) {
    for (const auto& [x, y] : one.points) {
      frame.x_end = std::max(frame.x_end, x);
      frame.y_end = std::max(frame.y_end, y);
    }
  }
  const bool any = std::any_of(series.begin(), series.end(),
                               [](const Series& one) { return !one.points.empty(); });
  if (!any) return Empty(text);
  if (!(frame.x_end > 0)) frame.x_end = 1;
  frame.y_end = frame.y_end > 0 ? frame.y_end * 1.05 : 1;
  std::string svg = Begin();
  AppendAxes(text, frame, svg);
  for (size_t i = 0; i < series.size(); ++i) {
    AppendSeries(series[i], frame, kColours[i % std::size(kColours)], svg);
  }
  AppendLegend(series, svg);
  return svg + "</svg>\n";
}

std::string Histogram(const ChartText& text, const std::vector<double>& values) {
  if (values.empty()) return Empty(text);
  const double largest = *std::max_element(values.begin(), values.end());
  const double end = largest > 0 ? largest : 1;
  std::vector<size_t> counts(kBins, 0);
  for (const double value : values) {
    const auto bin = static_cast<size_t>(std::max(value, 0.0) / end * kBins);
    ++counts[std::min(bin, kBins - 1)];
  }
  const auto highest = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const Frame frame{end, highest * 1.05};
  std::string svg = Begin();
  AppendAxes(text, frame, svg);
  const double bin_width = end / kBins;
  for (size_t i = 0; i < kBins; ++i) {
    const double from = bin_width * static_cast<double>(i);
    const double top = frame.Y(static_cast<double>(counts[i]));
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                          "fill=\"%s\"><title>%d from %s to %s</title></rect>",
                          frame.X(from) + 0.5, top, frame.X(bin_width) - frame.X(0) - 1,
                          frame.Y(0) - top, kColours[0], counts[i], Number(from),
                          Number(from + bin_width));
  }
  return svg + "</svg>\n";
}

}  // namespace tandem::load
