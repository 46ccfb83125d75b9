#include "tests/kernels/peaks/threads_flag.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tandem::kernels::peaks {
namespace {

constexpr std::string_view kFlag = "--threads=";
constexpr int kMaxThreads = 1024;

int Parse(std::string_view text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error == std::errc() && end == text.data() + text.size() && threads >= 1 &&
      threads <= kMaxThreads) {
    return threads;
  }
  std::fprintf(stderr, "--threads: needed 1 to %d, found '%.*s'\n", kMaxThreads,
               static_cast<int>(text.size()), text.data());
  std::exit(2);
}

}  // namespace

int TakeThreads(int* argc, char** argv) {
  int threads = 0;
  char** const end = std::remove_if(argv + 1, argv + *argc, [&](const char* argument) {
    const std::string_view text = argument;
    if (!text.starts_with(kFlag)) return false;
    threads = Parse(text.substr(kFlag.size()));
    return true;
  });
  *argc = static_cast<int>(end - argv);
  return threads;
}

}  // namespace tandem::kernels::peaks
