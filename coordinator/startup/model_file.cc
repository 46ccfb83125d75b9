#include "coordinator/startup/model_file.h"

#include <filesystem>
#include <system_error>

#include "common/base/status.h"
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

absl::StatusOr<ModelFile> Read(const config::ModelConfig& config) {
  TANDEM_ASSIGN_OR_RETURN(const gguf::File file, gguf::File::Open(config.path));
  ModelFile model;
  model.path = Absolute(config.path);
  TANDEM_ASSIGN_OR_RETURN(model.spec, model::BuildSpec(file, config.spec));
  model.fingerprint = model::ModelFingerprint(file);
  return model;
}

}  // namespace

absl::StatusOr<ModelFile> OpenModelFile(const config::ModelConfig& config) {
  absl::StatusOr<ModelFile> model = Read(config);
  if (!model.ok()) return Annotate(model.status(), config.path);
  return model;
}

absl::StatusOr<std::shared_ptr<const tokenizer::Tokenizer>> OpenTokenizer(const std::string& path) {
  absl::StatusOr<gguf::File> file = gguf::File::Open(path);
  if (!file.ok()) return Annotate(file.status(), path);
  auto made = tokenizer::MakeTokenizerFromGguf(file->metadata());
  if (!made.ok()) return Annotate(made.status(), path);
  return std::shared_ptr<const tokenizer::Tokenizer>(*std::move(made));
}

}  // namespace tandem::coordinator
