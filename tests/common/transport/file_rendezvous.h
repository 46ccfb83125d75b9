// A rendezvous of processes through the files of a folder, one for each key.
#ifndef TANDEM_TESTS_COMMON_TRANSPORT_FILE_RENDEZVOUS_H_
#define TANDEM_TESTS_COMMON_TRANSPORT_FILE_RENDEZVOUS_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/poll_pause.h"
#include "common/transport/rendezvous.h"

namespace tandem::transport {

class FileRendezvous : public Rendezvous {
 public:
  // An empty folder of the test's own.
  explicit FileRendezvous(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The file appears with all that is in it.
  absl::Status Put(const std::string& key, const std::string& value) override {
    const std::filesystem::path path = PathOf(key);
    if (std::filesystem::exists(path)) return absl::AlreadyExistsError(key);
    const std::filesystem::path half = path.string() + ".half";
    std::ofstream(half, std::ios::binary) << value;
    std::filesystem::rename(half, path);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(const std::string& key, Deadline deadline) override {
    for (PollPause pause; !std::filesystem::exists(PathOf(key)); pause()) {
      if (deadline.Passed()) return absl::DeadlineExceededError(key);
    }
    std::ifstream file(PathOf(key), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  std::filesystem::path PathOf(std::string key) const {
    std::replace(key.begin(), key.end(), '/', '-');
    return folder_ / key;
  }

  const std::filesystem::path folder_;
};

}  // namespace tandem::transport

#endif  // TANDEM_TESTS_COMMON_TRANSPORT_FILE_RENDEZVOUS_H_
