// The models of a repository, and which of them a name means.
#ifndef TANDEM_COMMON_HUB_MODEL_CHOICE_H_
#define TANDEM_COMMON_HUB_MODEL_CHOICE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/hub/repo_file.h"

namespace tandem::hub {

// A model: one file, or the files that it is split over (common/gguf/split.h).
struct RepoModel {
  std::string path;             // of its first file, whether or not it is there
  std::string quantization;     // "Q4_K_M", upper case; empty if the name has none
  std::vector<RepoFile> files;  // those that are there, in order
  uint32_t num_missing = 0;     // files of a split model that are not there
  std::string first_missing;    // the path of the first of them

  uint64_t size_bytes() const;
};

// The quantisation in a file's name, upper case: the last part between dashes and dots that is one,
// with "UD-" before it if the name has that. "a/llama-3.q4_k_m.gguf": "Q4_K_M".
std::string QuantizationOf(std::string_view path);

// Groups a repository's files to models, sorted by path.
std::vector<RepoModel> GroupModels(std::vector<RepoFile> files);

// The model that `choice` means: a quantisation (case-insensitive) or a path; empty: the only
// model, else the only one in Q4_K_M. NOT_FOUND if there is none or a file of it is missing,
// INVALID_ARGUMENT if there are several; the message lists what there is.
absl::StatusOr<RepoModel> ChooseModel(const std::vector<RepoModel>& models,
                                      std::string_view choice);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_MODEL_CHOICE_H_
