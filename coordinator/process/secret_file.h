// SecretFile: a secret for the processes that this one starts: a file without a name, which they
// read through a path of /proc.
#ifndef TANDEM_COORDINATOR_PROCESS_SECRET_FILE_H_
#define TANDEM_COORDINATOR_PROCESS_SECRET_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace tandem::coordinator {

// 128 random bits, in hexadecimal.
std::string DrawToken();

class SecretFile {
 public:
  static absl::StatusOr<std::unique_ptr<SecretFile>> Create(const std::string& text);
  ~SecretFile();

  // For processes of the same user, as long as this one has it. None inherits it: each opens the
  // one that it is told of.
  std::string path() const;

 private:
  explicit SecretFile(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_PROCESS_SECRET_FILE_H_
