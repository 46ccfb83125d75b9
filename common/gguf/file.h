// A GGUF file, version 2 or 3, read in place: metadata and tensor directory as views into the
// mapped bytes. A model split over several files (split.h) is opened by its first file and looks
// like a single file.
//
// Every value in a file is checked before it is used or stored: counts and lengths against the
// bytes that are left, keys and tensor names for duplicates, shapes and types for overflow and
// whole blocks, offsets for alignment, overlap and the file's end. An opened file can be read
// without further checks. Errors are INVALID_ARGUMENT, one line, without the path; those of a split
// model's other files name the file. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
//   TANDEM_ASSIGN_OR_RETURN(gguf::File file, gguf::File::Open(path));
//   TANDEM_ASSIGN_OR_RETURN(gguf::StringArray tokens,
//   file.metadata().GetStrings("tokenizer.ggml.tokens")); for (std::string_view token : tokens) ...
#ifndef TANDEM_COMMON_GGUF_FILE_H_
#define TANDEM_COMMON_GGUF_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/mapped_file.h"
#include "common/gguf/metadata.h"
#include "common/gguf/tensor_info.h"

namespace tandem::gguf {

// One of the mapped files.
struct FilePart {
  std::string name;  // without folders; empty after Parse
  std::span<const std::byte> bytes;
  size_t header_size = 0;  // bytes before the tensors' data: header, metadata, directory

  std::span<const std::byte> header_bytes() const { return bytes.first(header_size); }
};

// Movable; views stay valid when it moves. Thread-safe: never changes after Open.
class File {
 public:
  // Maps and reads the file, and the others of a split model. A file without tensors (a vocabulary)
  // is fine.
  static absl::StatusOr<File> Open(const std::string& path);
  // The same for bytes that the caller keeps alive. INVALID_ARGUMENT for a part of a split model.
  static absl::StatusOr<File> Parse(std::span<const std::byte> bytes);

  uint32_t version() const { return version_; }
  // Of the first file.
  const Metadata& metadata() const { return metadata_; }
  // In the files' order.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // Null if there is no such tensor.
  const TensorInfo* FindTensor(std::string_view name) const;

  // The files, in order; one if the model is not split.
  const std::vector<FilePart>& parts() const { return parts_; }
  // Of all files.
  uint64_t size_bytes() const;
  // Releases the mapping's pages once `part` of a tensor was copied elsewhere. No effect after
  // Parse.
  void DropPages(std::span<const std::byte> part) const;

 private:
  File() = default;
  // Reads one file, whether or not it is part of a split model.
  static absl::StatusOr<File> ParsePart(std::span<const std::byte> bytes);
  static absl::StatusOr<File> OpenPart(const std::string& path);
  // Opens the other files of a split model; this one is the first.
  absl::Status OpenOthers(const std::string& path);
  // Appends another file's tensors and mapping.
  void Take(File other);

  std::vector<MappedFile> mappings_;  // none after Parse
  std::vector<FilePart> parts_;
  uint32_t version_ = 0;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> by_name_;  // indices of tensors_, sorted by name
};

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_FILE_H_
