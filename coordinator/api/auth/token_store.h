// TokenStore: the tokens of a file, read again when it changes.
#ifndef TANDEM_COORDINATOR_API_AUTH_TOKEN_STORE_H_
#define TANDEM_COORDINATOR_API_AUTH_TOKEN_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/watched_file.h"
#include "coordinator/api/auth/token_table.h"

namespace tandem::coordinator {

// Thread-safe.
class TokenStore {
 public:
  // `flag` names `path`. INVALID_ARGUMENT with flag, path, line and what is wrong.
  static absl::StatusOr<std::unique_ptr<TokenStore>> Open(const std::string& flag,
                                                          const std::string& path);

  // What the file holds now. While it can't be used, what it held before; the log says so, once for
  // each change.
  std::shared_ptr<const TokenTable> Current();

 private:
  TokenStore(const std::string& flag, const std::string& path);
  absl::StatusOr<TokenTable> Read() TANDEM_REQUIRES(mutex_);

  Mutex mutex_;
  WatchedFile file_ TANDEM_GUARDED_BY(mutex_);
  std::shared_ptr<const TokenTable> current_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_AUTH_TOKEN_STORE_H_
