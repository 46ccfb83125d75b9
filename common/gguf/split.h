// Models split over several files: NAME-00001-of-0000N.gguf and its siblings in the same folder.
//
// Every file has split.no (from 0), split.count and split.tensors.count (of all files together);
// the first one holds the model's metadata, each holds some of the tensors. Source: llama.cpp,
// tools/gguf-split.
#ifndef TANDEM_COMMON_GGUF_SPLIT_H_
#define TANDEM_COMMON_GGUF_SPLIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/gguf/metadata.h"

namespace tandem::gguf {

// The split keys of a file.
struct SplitKeys {
  uint32_t number = 0;       // from 0
  uint32_t count = 1;        // 1: not split
  uint64_t num_tensors = 0;  // of all files; 0 where count is 1

  bool split() const { return count > 1; }
};

// INVALID_ARGUMENT naming the key that is missing, of a wrong type or out of range.
absl::StatusOr<SplitKeys> ReadSplitKeys(const Metadata& metadata);

// A path of the form PREFIX-00002-of-00003.gguf.
struct SplitPath {
  std::string prefix;   // with its folders
  uint32_t number = 0;  // from 0
  uint32_t count = 0;

  // Empty if `path` has another form.
  static std::optional<SplitPath> Parse(std::string_view path);
  // The path of file `other` (from 0) of the same model.
  std::string Sibling(uint32_t other) const;
};

// `path` without its folders: how messages name a file.
std::string_view FileName(std::string_view path);

// OK when `keys` are those of the first file at `path`. INVALID_ARGUMENT otherwise: a later file,
// or a name that does not match the keys, so that the other files could not be found.
absl::Status CheckFirstFile(std::string_view path, const SplitKeys& keys);

// OK when `keys`, read from a later file, continue those of the first one. INVALID_ARGUMENT naming
// the key, the needed and the found value.
absl::Status CheckLaterFile(const SplitKeys& first, uint32_t number, const SplitKeys& keys);

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_SPLIT_H_
