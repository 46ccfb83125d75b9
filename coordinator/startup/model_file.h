// ModelFile: the parts of a model read by the coordinator: spec, fingerprint and tokenizer. Only
// workers read weights.
#ifndef TANDEM_COORDINATOR_STARTUP_MODEL_FILE_H_
#define TANDEM_COORDINATOR_STARTUP_MODEL_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/model_config.h"
#include "common/gguf/file.h"
#include "common/model/adapter.h"
#include "common/model/spec.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/startup/file_stamps.h"

namespace tandem::coordinator {

// A LoRA adapter of the model.
struct AdapterFile {
  config::LoraModule module;  // with an absolute path
  FileStamps stamps{};
  std::shared_ptr<const model::Adapter> adapter{};
};

struct ModelFile {
  std::string path;  // absolute: workers may have another working directory
  model::ModelSpec spec;
  uint64_t fingerprint = 0;
  FileStamps stamps{};                       // as the file was then
  std::shared_ptr<const ModelFile> draft{};  // its draft model; null: none is configured
  std::vector<AdapterFile> adapters{};       // in the order of --lora-modules
  uint64_t adapters_fingerprint = 0;         // of all of them; 0: there are none

  // FileStamps::Changes of all files.
  std::string Changes() const;
};

// What a server needs of a model file.
struct ServedModel {
  ModelFile file;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
};

// The model as configured for the workers, and its tokenizer, without its draft model. The errors
// are what a server refuses.
absl::StatusOr<ServedModel> ReadServedModel(const gguf::File& file,
                                            const config::ModelConfig& config);

// The same from the file's path; a model named hf:OWNER/REPO[@REVISION][:QUANT] is fetched first,
// until `cancelled`, which is polled. With its draft model, which model::CheckDraftModel has
// passed, and its adapters, which model::ReadAdapter has. `on_fetched` is called for each piece
// that comes. Errors carry the path or the name.
absl::StatusOr<ServedModel> OpenServedModel(
    const config::ModelConfig& config,
    const std::function<bool()>& cancelled = [] { return false; },
    const std::function<void()>& on_fetched = nullptr);
// Its parts.
absl::StatusOr<ModelFile> OpenModelFile(
    const config::ModelConfig& config,
    const std::function<bool()>& cancelled = [] { return false; });
absl::StatusOr<std::shared_ptr<const tokenizer::Tokenizer>> OpenTokenizer(const std::string& path);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_MODEL_FILE_H_
