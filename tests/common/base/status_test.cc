#include "common/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tandem {
namespace {

absl::Status Pass(absl::Status status, bool* reached_end) {
  TANDEM_RETURN_IF_ERROR(status);
  *reached_end = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<int>> MakeEven(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(number);
}

absl::StatusOr<int> Sum(int a, int b) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<int> first, MakeEven(a));
  TANDEM_ASSIGN_OR_RETURN(const auto second, MakeEven(b));
  return *first + *second;
}

TEST(StatusMacrosTest, ReturnIfErrorReturnsTheError) {
  bool reached_end = false;
  EXPECT_EQ(Pass(absl::NotFoundError("gone"), &reached_end), absl::NotFoundError("gone"));
  EXPECT_FALSE(reached_end);
  EXPECT_TRUE(Pass(absl::OkStatus(), &reached_end).ok());
  EXPECT_TRUE(reached_end);
}

TEST(StatusMacrosTest, AssignOrReturnMovesTheValueOrReturnsTheError) {
  EXPECT_EQ(*Sum(2, 4), 6);
  EXPECT_EQ(Sum(2, 3).status(), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(Sum(1, 2).status(), absl::InvalidArgumentError("odd"));
}

TEST(AnnotateTest, PutsThePlaceBeforeTheMessageAndKeepsTheCode) {
  EXPECT_EQ(Annotate(absl::NotFoundError("no such key"), "model.gguf"),
            absl::NotFoundError("model.gguf: no such key"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "model.gguf").ok());
}

}  // namespace
}  // namespace tandem
