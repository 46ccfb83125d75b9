#include "common/config/field.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "common/config/cache_config.h"
#include "common/config/device_config.h"

namespace tandem::config {
namespace {

template <typename T>
std::string Again(const T& value) {
  T read{};
  const std::string text = ToText(value);
  EXPECT_TRUE(FromText(text, read)) << text;
  EXPECT_EQ(read, value) << text;
  return text;
}

TEST(TextFormTest, IsExact) {
  EXPECT_EQ(Again(true), "true");
  EXPECT_EQ(Again(-7), "-7");
  EXPECT_EQ(Again(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(Again(0.1), "0.1");
  EXPECT_EQ(Again(1.0f / 3), "0.33333334");
  Again(0.1 + 0.2);
  EXPECT_EQ(Again(std::string("a, b")), "a, b");
  EXPECT_EQ(Again(Duration(std::chrono::minutes(10))), "600s");
  EXPECT_EQ(Again(Duration(std::chrono::milliseconds(1500))), "1.5s");
  EXPECT_EQ(Again(Duration(1'000'000'001)), "1.000000001s");
  EXPECT_EQ(Again(ByteSize{8 << 20}), "8MiB");
  EXPECT_EQ(Again(ByteSize{uint64_t{3} << 50}), "3PiB");
  EXPECT_EQ(Again(ByteSize{1500}), "1500");
  EXPECT_EQ(Again(ByteSize{}), "auto");
  EXPECT_EQ(Again(CpuKernels::kAvx512), "avx512");
  EXPECT_EQ(Again(tensor::Type::kQ8_0), "q8_0");
  EXPECT_EQ(Again(std::optional<Device>()), "");
  EXPECT_EQ(Again(std::optional<Device>(Device::kCuda)), "cuda");
  std::optional<std::string> text;
  EXPECT_TRUE(FromText("", text));
  EXPECT_EQ(text, "");  // as a flag it was given
  EXPECT_EQ(Again(std::vector<uint32_t>{1, 4}), "1,4");
}

template <typename T>
bool Reads(std::string_view text) {
  T value{};
  return FromText(text, value);
}

TEST(TextFormTest, RefusesNonsense) {
  for (const char* bad : {"", "0", "-1", "GiB", "1.5GiB", "2 TiB", "1iB", "1KK", "1GBi", "17EiB",
                          "99999999999999999999", "99999999999GiB"}) {
    EXPECT_FALSE(Reads<ByteSize>(bad)) << bad;
  }
  for (const char* bad : {"", "-1", "1.5", "4294967296", "1x", " 1"}) {
    EXPECT_FALSE(Reads<uint32_t>(bad)) << bad;
  }
  for (const char* bad : {"", "soon", "60 s", "s"}) EXPECT_FALSE(Reads<Duration>(bad)) << bad;
  for (const char* bad : {"", "yes", "1", "True"}) EXPECT_FALSE(Reads<bool>(bad)) << bad;
  for (const char* bad : {"", "F16", "q4_0"}) EXPECT_FALSE(Reads<tensor::Type>(bad)) << bad;
  EXPECT_FALSE(Reads<std::vector<uint32_t>>("1,,2"));
}

TEST(TextFormTest, TakesUnitsAndSeconds) {
  ByteSize size;
  for (const char* text : {"24GB", "24G", "24g", "24gb", "24000MB", "24000000000b"}) {
    EXPECT_TRUE(FromText(text, size)) << text;
    EXPECT_EQ(size.bytes, 24'000'000'000u) << text;
  }
  for (const char* text : {"1EiB", "1ei", "1024PiB", "1048576Ti"}) {
    EXPECT_TRUE(FromText(text, size)) << text;
    EXPECT_EQ(size.bytes, 1ull << 60) << text;
  }
  Duration time;
  EXPECT_TRUE(FromText("0.5", time));
  EXPECT_EQ(time, std::chrono::milliseconds(500));
  EXPECT_TRUE(FromText("2m", time));
  EXPECT_EQ(time, std::chrono::minutes(2));
}

TEST(FieldTest, ErrorsHaveFlagFoundAndAllowed) {
  uint32_t number = 16;
  Field size(number, {.flag = "--block-size,-b", .help = "tokens", .least = 1, .most = 4096});
  EXPECT_EQ(size.name(), "block-size");
  EXPECT_EQ(size.Text(), "16");
  EXPECT_EQ(size.Set("0"), absl::OutOfRangeError("--block-size is 0, it must be from 1 to 4096"));
  EXPECT_EQ(size.Set("many"), absl::InvalidArgumentError("--block-size is 'many', it must be a "
                                                         "whole number from 1 to 4096"));
  EXPECT_TRUE(size.Set("32").ok());
  EXPECT_EQ(number, 32u);

  Device device = Device::kCpu;
  EXPECT_EQ(Field(device, {.flag = "--device"}).Set("tpu"),
            absl::OutOfRangeError("--device is 'tpu', it must be one of cpu, cuda"));

  Duration time = std::chrono::seconds(60);
  EXPECT_EQ(Field(time, {.flag = "--step-timeout", .least = 0.1, .most = 86400}).Set("0"),
            absl::OutOfRangeError("--step-timeout is 0s, it must be from 100ms to 86400s"));
}

TEST(FieldTest, NoRangeHasNan) {
  double part = 0.9;
  Field field(part, {.flag = "--part", .least = 0.01, .most = 1});
  EXPECT_FALSE(field.Set("nan").ok());
  part = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(field.Check().ok());
}

TEST(FieldTest, ListsAppendAndEachElementIsInRange) {
  std::vector<uint32_t> numbers = {1, 2};
  Field field(numbers, {.flag = "--batch", .least = 1, .most = 8});
  field.Clear();
  EXPECT_TRUE(field.Set("3,4").ok());
  EXPECT_TRUE(field.Set("5").ok());
  EXPECT_EQ(numbers, (std::vector<uint32_t>{3, 4, 5}));
  EXPECT_EQ(field.Set("9"), absl::OutOfRangeError("--batch is 3,4,5,9, it must be from 1 to 8"));
}

TEST(FieldTest, WhatIsUnsetIsInEveryRange) {
  std::optional<uint32_t> number;
  EXPECT_TRUE(Field(number, {.flag = "--n", .least = 1, .most = 8}).Check().ok());
}

TEST(TextFormTest, AQuotedTextIsOneShortLineOfUtf8) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("model \u00e4"), "'model \u00e4'");
  EXPECT_EQ(Quoted("a\r\n\tb"), R"('a\r\n\tb')");
  EXPECT_EQ(Quoted(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(Quoted(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
  // A character is not cut in two, and what is none ends the text.
  EXPECT_EQ(Quoted(std::string(59, 'x') + "\u00e4"), "'" + std::string(59, 'x') + "...'");
  EXPECT_EQ(Quoted("ab\xff"
                   "c"),
            "'ab...'");
}

}  // namespace
}  // namespace tandem::config
