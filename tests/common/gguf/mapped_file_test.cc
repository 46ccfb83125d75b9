#include "common/gguf/mapped_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>

#include "common/gguf/file.h"
#include "tests/common/gguf/gguf_builder.h"

namespace tandem::gguf {
namespace {

std::string WriteFile(const std::string& name, std::string_view content) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(MappedFileTest, MapsTheWholeFileAndMoves) {
  auto mapped = MappedFile::Open(WriteFile("whole", "hello"));
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  MappedFile moved = std::move(*mapped);
  ASSERT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(moved.bytes()[4], std::byte{'o'});
  MappedFile assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.bytes()[0], std::byte{'h'});
}

TEST(MappedFileTest, AnEmptyFileHasNoBytes) {
  auto mapped = MappedFile::Open(WriteFile("empty", ""));
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST(MappedFileTest, MissingFilesAndFoldersAreRefused) {
  const auto missing = MappedFile::Open(testing::TempDir() + "no-such-file");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound) << missing.status();
  const auto folder = MappedFile::Open(testing::TempDir());
  EXPECT_EQ(folder.status(), absl::InvalidArgumentError("not a regular file"));
}

TEST(MappedFileTest, AFileOutlivesItsOpeningScope) {
  GgufBuilder builder;
  builder.AddString("general.name", "mapped");
  const auto bytes = builder.Build();
  const std::string path =
      WriteFile("model", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto opened = File::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const File file = std::move(*opened);
  EXPECT_EQ(*file.metadata().GetString("general.name"), "mapped");
  EXPECT_EQ(file.size_bytes(), bytes.size());
}

}  // namespace
}  // namespace tandem::gguf
