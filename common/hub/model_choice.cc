#include "common/hub/model_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/gguf/split.h"
#include "common/model/human_bytes.h"

namespace tandem::hub {
namespace {

constexpr char kDefaultQuantization[] = "Q4_K_M";
constexpr size_t kMaxListed = 40;

bool IsQuantization(absl::string_view part) {
  static constexpr absl::string_view kPlain[] = {"F16",  "BF16",  "F32",       "FP16",
                                                 "FP32", "MXFP4", "MXFP4_MOE", "NVFP4"};
  if (std::find(std::begin(kPlain), std::end(kPlain), part) != std::end(kPlain)) return true;
  if (!part.empty() && (part[0] == 'I' || part[0] == 'T')) part.remove_prefix(1);  // IQ4_XS, TQ1_0
  return part.size() >= 2 && part[0] == 'Q' && absl::ascii_isdigit(part[1]) &&
         (part.size() == 2 || part[2] == '_');
}

// `path` without the ending and, of a split model, the number.
std::string Stem(std::string_view path) {
  if (const auto split = gguf::SplitPath::Parse(path)) return split->prefix;
  return std::string(path.substr(0, path.rfind(".gguf")));
}

std::string Listed(const std::vector<const RepoModel*>& models) {
  if (models.empty()) return "no GGUF file";
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(models.size(), kMaxListed); ++i) {
    const RepoModel& model = *models[i];
    texts.push_back(absl::StrCat(model.quantization.empty() ? "" : model.quantization,
                                 model.quantization.empty() ? "" : ": ", model.path, " (",
                                 model::HumanBytes(model.size_bytes()), ")"));
  }
  if (models.size() > kMaxListed) {
    texts.push_back(absl::StrCat("and ", models.size() - kMaxListed, " more"));
  }
  return absl::StrJoin(texts, ", ");
}

bool Matches(const RepoModel& model, std::string_view choice) {
  if (choice.ends_with(".gguf")) {
    return model.path == choice || gguf::FileName(model.path) == choice;
  }
  return absl::EqualsIgnoreCase(model.quantization, Sv(choice));
}

std::vector<const RepoModel*> Matching(const std::vector<const RepoModel*>& models,
                                       std::string_view choice) {
  std::vector<const RepoModel*> matching;
  std::copy_if(models.begin(), models.end(), std::back_inserter(matching),
               [&](const RepoModel* model) { return Matches(*model, choice); });
  return matching;
}

}  // namespace

uint64_t RepoModel::size_bytes() const {
  uint64_t bytes = 0;
  for (const RepoFile& file : files) bytes += file.content.size_bytes;
  return bytes;
}

std::string QuantizationOf(std::string_view path) {
  const std::string stem = absl::AsciiStrToUpper(Sv(gguf::FileName(Stem(path))));
  const std::vector<absl::string_view> parts = absl::StrSplit(stem, absl::ByAnyChar("-."));
  for (size_t i = parts.size(); i-- > 0;) {
    if (!IsQuantization(parts[i])) continue;
    return absl::StrCat(i > 0 && parts[i - 1] == "UD" ? "UD-" : "", parts[i]);
  }
  return {};
}

std::vector<RepoModel> GroupModels(std::vector<RepoFile> files) {
  // By prefix and count of files; a file that is not split has its path and count 0.
  std::map<std::pair<std::string, uint32_t>, std::map<uint32_t, RepoFile>> groups;
  for (RepoFile& file : files) {
    const auto split = gguf::SplitPath::Parse(file.path).value_or(
        gguf::SplitPath{.prefix = file.path, .number = 0, .count = 0});
    groups[{split.prefix, split.count}].emplace(split.number, std::move(file));
  }
  std::vector<RepoModel> models;
  for (auto& [key, parts] : groups) {
    const gguf::SplitPath name{.prefix = key.first, .number = 0, .count = key.second};
    RepoModel model;
    model.path = name.count == 0 ? name.prefix : name.Sibling(0);
    model.quantization = QuantizationOf(model.path);
    uint32_t first_missing = 0;
    for (auto& [number, file] : parts) {
      if (number == first_missing) ++first_missing;
      model.files.push_back(std::move(file));
    }
    if (first_missing < name.count) {
      model.num_missing = name.count - static_cast<uint32_t>(parts.size());
      model.first_missing = name.Sibling(first_missing);
    }
    models.push_back(std::move(model));
  }
  return models;
}

absl::StatusOr<RepoModel> ChooseModel(const std::vector<RepoModel>& models,
                                      std::string_view choice) {
  std::vector<const RepoModel*> all;
  for (const RepoModel& model : models) all.push_back(&model);
  std::vector<const RepoModel*> chosen = all;
  if (!choice.empty()) {
    chosen = Matching(all, choice);
  } else if (all.size() > 1) {
    chosen = Matching(all, kDefaultQuantization);
    if (chosen.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are several models and none in ", kDefaultQuantization,
                       "; name one as hf:OWNER/REPO:QUANT, of: ", Listed(all)));
    }
  }
  if (chosen.empty()) {
    return absl::NotFoundError(
        absl::StrCat(choice.empty() ? "" : absl::StrCat("there is no ", Sv(choice), "; "),
                     "there is: ", Listed(all)));
  }
  if (chosen.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "several models match; name one as hf:OWNER/REPO:FILE.gguf, of: ", Listed(chosen)));
  }
  const RepoModel& model = *chosen.front();
  if (model.num_missing > 0) {
    return absl::NotFoundError(absl::StrCat(
        "the model lacks ", model.num_missing, " of its ", model.num_missing + model.files.size(),
        " files: ", model.first_missing, model.num_missing > 1 ? " and others" : ""));
  }
  return model;
}

}  // namespace tandem::hub
