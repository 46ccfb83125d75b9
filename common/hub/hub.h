// Models by name: hf:OWNER/REPO[@REVISION][:QUANT] as the path of a GGUF file, fetched from a model
// hub into the cache that huggingface_hub uses too.
//
//   TANDEM_ASSIGN_OR_RETURN(const std::string path, hub::ModelPath(model, cancelled));
#ifndef TANDEM_COMMON_HUB_HUB_H_
#define TANDEM_COMMON_HUB_HUB_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/hub/model_name.h"
#include "common/hub/settings.h"

namespace tandem::hub {

// The path of the model's file, of a split model of its first one, after all are in the cache.
// Offline, or if the hub cannot be reached or refuses, from what is in the cache; a commit's file
// that is there without asking. Progress is written to stderr. Errors are one line that begins with
// the model's name; what was fetched until then is kept, and the next call continues there.
absl::StatusOr<std::string> FetchModel(const ModelName& name, const Settings& settings,
                                       const Cancelled& cancelled);

// `model` itself unless it is a name, then FetchModel with the environment's settings, and
// Settings::on_progress.
absl::StatusOr<std::string> ModelPath(const std::string& model, const Cancelled& cancelled,
                                      const std::function<void()>& on_progress = nullptr);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_HUB_H_
