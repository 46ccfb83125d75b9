#include "coordinator/startup/model_file.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/hub/hub.h"
#include "common/model/build_spec.h"
#include "common/model/draft_model.h"
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

// The configuration with the paths of files, which are fetched first if they are named.
absl::StatusOr<config::ModelConfig> Fetched(config::ModelConfig config,
                                            const std::function<bool()>& cancelled,
                                            const std::function<void()>& on_fetched = nullptr) {
  TANDEM_ASSIGN_OR_RETURN(config.path, hub::ModelPath(config.path, cancelled, on_fetched));
  if (config.draft_path.empty()) return config;
  TANDEM_ASSIGN_OR_RETURN(config.draft_path,
                          hub::ModelPath(config.draft_path, cancelled, on_fetched));
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

// The draft model of `model`, which is `file`.
absl::StatusOr<std::shared_ptr<const ModelFile>> OpenDraft(const config::ModelConfig& config,
                                                           const gguf::File& file,
                                                           const ModelFile& model) {
  const config::ModelConfig draft{.path = config.draft_path,
                                  .spec = {.max_model_len = config.spec.max_model_len}};
  const auto read = [&](const gguf::File& draft_file) -> absl::StatusOr<ModelFile> {
    TANDEM_ASSIGN_OR_RETURN(ModelFile found, ReadModelFile(draft_file, draft));
    TANDEM_RETURN_IF_ERROR(model::CheckDraftModel(file, model.spec, draft_file, found.spec));
    return found;
  };
  TANDEM_ASSIGN_OR_RETURN(ModelFile found, Opened(draft.path, read));
  return std::make_shared<const ModelFile>(std::move(found));
}

absl::Status AddAdapters(const config::ModelConfig& config, ModelFile& model) {
  for (const config::LoraModule& module : config.lora_modules) {
    absl::StatusOr<model::Adapter> adapter = model::OpenAdapter(module.path, model.spec);
    if (!adapter.ok()) return Annotate(adapter.status(), module.path);
    const std::string path = Absolute(module.path);
    if (path.find(',') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("--lora-modules: the path ", path,
                                                     " has a comma, which separates adapters"));
    }
    model.adapters_fingerprint = model::AddContents(model.adapters_fingerprint, adapter->file);
    model.adapters.push_back(
        {.module = {.name = module.name, .path = path},
         .stamps = StampsOf(adapter->file, path),
         .adapter = std::make_shared<const model::Adapter>(*std::move(adapter))});
  }
  return absl::OkStatus();
}

// As Opened, with adapters and the draft model in the part of the result that `file_of` names, if
// there are any.
template <typename Read, typename FileOf>
auto OpenedWithOthers(const config::ModelConfig& config, const Read& read, const FileOf& file_of)
    -> decltype(read(std::declval<const gguf::File&>())) {
  TANDEM_ASSIGN_OR_RETURN(auto result, Opened(config.path, read));
  TANDEM_RETURN_IF_ERROR(AddAdapters(config, file_of(result)));
  if (config.draft_path.empty()) return result;
  const absl::StatusOr<gguf::File> file = gguf::File::Open(config.path);
  if (!file.ok()) return Annotate(file.status(), config.path);
  ModelFile& model = file_of(result);
  TANDEM_ASSIGN_OR_RETURN(model.draft, OpenDraft(config, *file, model));
  return result;
}

}  // namespace

std::string ModelFile::Changes() const {
  std::string changes = stamps.Changes();
  if (changes.empty() && draft != nullptr) changes = draft->Changes();
  for (const AdapterFile& adapter : adapters) {
    if (changes.empty()) changes = adapter.stamps.Changes();
  }
  return changes;
}

absl::StatusOr<ServedModel> ReadServedModel(const gguf::File& file,
                                            const config::ModelConfig& config) {
  ServedModel served;
  TANDEM_ASSIGN_OR_RETURN(served.file, ReadModelFile(file, config));
  TANDEM_ASSIGN_OR_RETURN(served.tokenizer, tokenizer::MakeTokenizerFromGguf(file.metadata()));
  return served;
}

absl::StatusOr<ServedModel> OpenServedModel(const config::ModelConfig& config,
                                            const std::function<bool()>& cancelled,
                                            const std::function<void()>& on_fetched) {
  TANDEM_ASSIGN_OR_RETURN(const config::ModelConfig local, Fetched(config, cancelled, on_fetched));
  return OpenedWithOthers(
      local, [&](const gguf::File& file) { return ReadServedModel(file, local); },
      [](ServedModel& served) -> ModelFile& { return served.file; });
}

absl::StatusOr<ModelFile> OpenModelFile(const config::ModelConfig& config,
                                        const std::function<bool()>& cancelled) {
  TANDEM_ASSIGN_OR_RETURN(const config::ModelConfig local, Fetched(config, cancelled));
  return OpenedWithOthers(
      local, [&](const gguf::File& file) { return ReadModelFile(file, local); },
      [](ModelFile& model) -> ModelFile& { return model; });
}

absl::StatusOr<std::shared_ptr<const tokenizer::Tokenizer>> OpenTokenizer(const std::string& path) {
  return Opened(
      path,
      [](const gguf::File& file) -> absl::StatusOr<std::shared_ptr<const tokenizer::Tokenizer>> {
        return tokenizer::MakeTokenizerFromGguf(file.metadata());
      });
}

}  // namespace tandem::coordinator
