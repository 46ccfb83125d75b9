#include "common/gguf/parse_directory.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checked_size.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"

namespace tandem::gguf {
namespace {

// The shortest row: an empty name's length, one dimension, type and offset.
constexpr uint64_t kMinRowBytes = 8 + 4 + 8 + 4 + 8;
constexpr uint32_t kMaxDims = 4;

absl::Status Bad(const TensorInfo& tensor, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(tensor.name), ": ", Sv(what)));
}

absl::Status CutOff(const TensorInfo& tensor, const Cursor& cursor) {
  return Bad(tensor, absl::StrCat("its row of the tensor table does not fit the ",
                                  cursor.remaining(), " bytes left in the file"));
}

absl::Status ReadShape(TensorInfo& tensor, Cursor& cursor) {
  if (!cursor.Read(&tensor.num_dims)) return CutOff(tensor, cursor);
  if (tensor.num_dims < 1 || tensor.num_dims > kMaxDims) {
    return Bad(tensor, absl::StrCat("needed 1 to 4 dimensions, found ", tensor.num_dims));
  }
  CheckedSize values = 1;
  for (uint32_t i = 0; i < tensor.num_dims; ++i) {
    if (!cursor.Read(&tensor.dims[i])) return CutOff(tensor, cursor);
    if (tensor.dims[i] == 0) return Bad(tensor, absl::StrCat("dimension ", i, " is 0"));
    values *= tensor.dims[i];
  }
  // Signed sizes stay safe everywhere below this line.
  if (!values.FitsIn(std::numeric_limits<int64_t>::max())) {
    return Bad(tensor, absl::StrCat("shape ", tensor.ShapeText(), " has more than 2^63 values"));
  }
  tensor.values = *values.value();
  return absl::OkStatus();
}

absl::Status ReadTypeAndOffset(TensorInfo& tensor, Cursor& cursor) {
  uint32_t number = 0;
  if (!cursor.Read(&number) || !cursor.Read(&tensor.offset)) return CutOff(tensor, cursor);
  const std::optional<tensor::TypeTraits> traits = tensor::FindTypeTraits(number);
  if (!traits.has_value()) return Bad(tensor, absl::StrCat("unknown tensor type ", number));
  tensor.type = traits->type;
  if (tensor.dims[0] % traits->block_values != 0) {
    return Bad(tensor, absl::StrCat("rows of ", tensor.dims[0], " values are not whole blocks of ",
                                    traits->block_values, " (type ", Sv(traits->name), ")"));
  }
  const CheckedSize bytes = CheckedSize(tensor.values / traits->block_values) * traits->block_bytes;
  if (!bytes.FitsIn(std::numeric_limits<int64_t>::max())) {
    return Bad(tensor, absl::StrCat("shape ", tensor.ShapeText(), " has more than 2^63 bytes"));
  }
  tensor.bytes = *bytes.value();
  return absl::OkStatus();
}

// REQUIRES: every tensor lies inside the file, so that offset + bytes cannot wrap.
absl::Status CheckOverlap(const std::vector<TensorInfo>& tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return tensors[a].offset < tensors[b].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& before = tensors[order[i - 1]];
    const TensorInfo& after = tensors[order[i]];
    if (before.offset + before.bytes > after.offset) {
      return Bad(after, absl::StrCat("its data at offset ", after.offset,
                                     " overlaps that of tensor ", Quoted(before.name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string TensorInfo::ShapeText() const {
  return absl::StrCat("[", absl::StrJoin(dims.begin(), dims.begin() + num_dims, ", "), "]");
}

absl::StatusOr<std::vector<TensorInfo>> ParseDirectory(uint64_t count, Cursor& cursor) {
  if (!(CheckedSize(count) * kMinRowBytes).FitsIn(cursor.remaining())) {
    return absl::InvalidArgumentError(absl::StrCat("the header states ", count,
                                                   " tensors, more than the ", cursor.remaining(),
                                                   " bytes left in the file can hold"));
  }
  std::vector<TensorInfo> tensors;
  for (uint64_t i = 0; i < count; ++i) {
    TensorInfo& tensor = tensors.emplace_back();
    if (!cursor.ReadString(&tensor.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name of tensor ", i, " of ", count, " at byte ", cursor.position(),
                       " does not fit the ", cursor.remaining(), " bytes left in the file"));
    }
    TANDEM_RETURN_IF_ERROR(ReadShape(tensor, cursor));
    TANDEM_RETURN_IF_ERROR(ReadTypeAndOffset(tensor, cursor));
  }
  return tensors;
}

absl::Status PlaceTensors(std::span<const std::byte> file, size_t directory_end, uint64_t alignment,
                          std::vector<TensorInfo>& tensors) {
  if (tensors.empty()) return absl::OkStatus();  // a vocabulary has no data section
  const CheckedSize start =
      CheckedSize(directory_end) + (alignment - directory_end % alignment) % alignment;
  if (!start.FitsIn(file.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the tensor data would start past the end of the file: the table ends at byte ",
        directory_end, ", the alignment is ", alignment, ", the file has ", file.size(), " bytes"));
  }
  const std::span<const std::byte> data = file.subspan(*start.value());
  for (TensorInfo& tensor : tensors) {
    if (tensor.offset % alignment != 0) {
      return Bad(tensor, absl::StrCat("needed an offset that is a multiple of ", alignment,
                                      ", found ", tensor.offset));
    }
    if (!(CheckedSize(tensor.offset) + tensor.bytes).FitsIn(data.size())) {
      return Bad(tensor, absl::StrCat("needs ", tensor.bytes, " bytes from offset ", tensor.offset,
                                      ", but the file has ", data.size(), " bytes of tensor data"));
    }
    tensor.data = data.data() + tensor.offset;
  }
  return CheckOverlap(tensors);
}

absl::StatusOr<std::vector<uint32_t>> SortByName(const std::vector<TensorInfo>& tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (tensors[order[i - 1]].name == tensors[order[i]].name) {
      return Bad(tensors[order[i]], "occurs twice in the file");
    }
  }
  return order;
}

}  // namespace tandem::gguf
