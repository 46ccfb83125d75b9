#include "tests/load/objectives.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/config/text_form.h"

namespace tandem::load {

absl::StatusOr<std::vector<MetricName>> ParseMetricNames(const std::vector<std::string>& texts) {
  std::vector<MetricName> names;
  for (const std::string& text : texts) {
    for (const std::string_view part : config::SplitList(text)) {
      const size_t before = names.size();
      for (const MetricText& metric : kMetricTexts) {
        if (part == metric.key) names.push_back(metric.name);
      }
      if (names.size() == before) {
        return absl::InvalidArgumentError(absl::StrCat("--percentile-metrics: '", Sv(part),
                                                       "' is none of ttft, tpot, itl, e2el"));
      }
    }
  }
  return names;
}

absl::StatusOr<Objectives> ParseObjectives(const std::vector<std::string>& texts) {
  Objectives objectives;
  for (const std::string& text : texts) {
    for (const std::string_view part : config::SplitList(text)) {
      const size_t colon = part.find(':');
      const std::string_view name = part.substr(0, colon);
      std::optional<double>* objective = name == "ttft"   ? &objectives.ttft_ms
                                         : name == "tpot" ? &objectives.tpot_ms
                                         : name == "e2el" ? &objectives.e2el_ms
                                                          : nullptr;
      double limit = 0;
      const bool valid = objective != nullptr && colon != std::string_view::npos &&
                         config::FromText(part.substr(colon + 1), limit) && limit >= 0;
      if (!valid) {
        return absl::InvalidArgumentError(
            absl::StrCat("--goodput: '", Sv(part),
                         "' is not NAME:MS with NAME one of ttft, tpot, e2el, and MS at least 0"));
      }
      *objective = limit;
    }
  }
  return objectives;
}

}  // namespace tandem::load
