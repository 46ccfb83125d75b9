#include "coordinator/api/auth/token_store.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"

namespace tandem::coordinator {
namespace {

constexpr size_t kMaxFileBytes = 4 << 20;

}  // namespace

TokenStore::TokenStore(const std::string& flag, const std::string& path)
    : file_(flag, path, kMaxFileBytes) {}

absl::StatusOr<std::unique_ptr<TokenStore>> TokenStore::Open(const std::string& flag,
                                                             const std::string& path) {
  std::unique_ptr<TokenStore> store(new TokenStore(flag, path));
  MutexLock lock(store->mutex_);
  TANDEM_ASSIGN_OR_RETURN(TokenTable table, store->Read());
  if ((store->file_.mode() & S_IROTH) != 0) {
    TANDEM_LOG(kWarning) << store->file_.Name() << " can be read by every user of this machine";
  }
  store->current_ = std::make_shared<const TokenTable>(std::move(table));
  return store;
}

absl::StatusOr<TokenTable> TokenStore::Read() {
  TANDEM_ASSIGN_OR_RETURN(const std::string text, file_.Read());
  absl::StatusOr<TokenTable> table = TokenTable::Parse(text);
  if (!table.ok()) return Annotate(table.status(), file_.Name());
  return table;
}

std::shared_ptr<const TokenTable> TokenStore::Current() {
  MutexLock lock(mutex_);
  if (!file_.Changed()) return current_;
  absl::StatusOr<TokenTable> table = Read();
  if (table.ok()) {
    current_ = std::make_shared<const TokenTable>(*std::move(table));
    TANDEM_LOG(kInfo) << file_.Name() << " has changed: " << current_->entries().size()
                      << " token(s) are taken";
  } else {
    TANDEM_LOG(kError) << "new tokens are not used, those before still are: "
                       << table.status().message();
  }
  return current_;
}

}  // namespace tandem::coordinator
