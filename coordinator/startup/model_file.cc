#include "coordinator/startup/model_file.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/hub/hub.h"
#include "common/model/build_spec.h"
#include "common/model/fingerprint.h"
#include "common/tokenizer/gguf_vocabulary.h"

namespace tandem::coordinator {
namespace {

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

// Of all files of the model whose first is at `path`.
FileStamps StampsOf(const gguf::File& file, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<std::string> paths;
  for (const gguf::FilePart& part : file.parts()) paths.push_back((folder / part.name).string());
  return FileStamps::Of(paths);
}

absl::StatusOr<ModelFile> ReadModelFile(const gguf::File& file, const config::ModelConfig& config) {
  ModelFile model;
  model.path = Absolute(config.path);
  model.stamps = StampsOf(file, model.path);
  TANDEM_ASSIGN_OR_RETURN(model.spec, model::BuildSpec(file, config.spec));
  model.fingerprint = model::ModelFingerprint(file);
  return model;
}

// The configuration with the path of a file, which is fetched first if it is named.
absl::StatusOr<config::ModelConfig> Fetched(config::ModelConfig config,
                                            const std::function<bool()>& cancelled) {
  TANDEM_ASSIGN_OR_RETURN(config.path, hub::ModelPath(config.path, cancelled));
  return config;
}

// `read` of the file at `path`; errors carry the path.
template <typename Read>
auto Opened(const std::string& path, const Read& read)
    -> decltype(read(std::declval<const gguf::File&>())) {
  const absl::StatusOr<gguf::File> file = gguf::File::Open(path);
  if (!file.ok()) return Annotate(file.status(), path);
  auto result = read(*file);
  if (!result.ok()) return Annotate(result.status(), path);
  return result;
}

}  // namespace

absl::StatusOr<ServedModel> ReadServedModel(const gguf::File& file,
                                            const config::ModelConfig& config) {
  ServedModel served;
  TANDEM_ASSIGN_OR_RETURN(served.file, ReadModelFile(file, config));
  TANDEM_ASSIGN_OR_RETURN(served.tokenizer, tokenizer::MakeTokenizerFromGguf(file.metadata()));
  return served;
}

absl::StatusOr<ServedModel> OpenServedModel(const config::ModelConfig& config,
                                            const std::function<bool()>& cancelled) {
  TANDEM_ASSIGN_OR_RETURN(const config::ModelConfig local, Fetched(config, cancelled));
  return Opened(local.path, [&](const gguf::File& file) { return ReadServedModel(file, local); });
}

absl::StatusOr<ModelFile> OpenModelFile(const config::ModelConfig& config,
                                        const std::function<bool()>& cancelled) {
  TANDEM_ASSIGN_OR_RETURN(const config::ModelConfig local, Fetched(config, cancelled));
  return Opened(local.path, [&](const gguf::File& file) { return ReadModelFile(file, local); });
}

absl::StatusOr<std::shared_ptr<const tokenizer::Tokenizer>> OpenTokenizer(const std::string& path) {
  return Opened(
      path,
      [](const gguf::File& file) -> absl::StatusOr<std::shared_ptr<const tokenizer::Tokenizer>> {
        return tokenizer::MakeTokenizerFromGguf(file.metadata());
      });
}

}  // namespace tandem::coordinator
