#include "common/config/worker_config.h"

#include <vector>

namespace tandem::config {
namespace {

std::vector<std::string> ReloadTexts(WorkerConfig config) {
  FieldList fields;
  config.ForEach(fields);
  std::vector<std::string> texts;
  for (const Field& field : fields.All()) {
    if (field.meta().reload) texts.push_back(field.Text());
  }
  return texts;
}

}  // namespace

bool NeedsReload(const WorkerConfig& a, const WorkerConfig& b) {
  return ReloadTexts(a) != ReloadTexts(b);
}

}  // namespace tandem::config
