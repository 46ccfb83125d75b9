// HttpServer: a few pages over HTTP, each made when it is asked for, by CivetWeb. Only GET and
// HEAD; no files.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_OBSERVE_HTTP_SERVER_H_
#define TANDEM_COORDINATOR_OBSERVE_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

struct mg_context;

namespace tandem::coordinator {

class HttpServer {
 public:
  struct Page {
    std::string type;                   // of its content
    std::function<std::string()> make;  // called on any of the server's threads
  };
  using Pages = std::map<std::string, Page, std::less<>>;  // by path

  // Listens on HOST:PORT. UNAVAILABLE naming `flag`, the address and the system's reason.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& flag,
                                                           const std::string& address, Pages pages);
  ~HttpServer();  // answers what has been asked, then closes

  // HOST:PORT that is bound.
  const std::string& address() const { return address_; }
  const Pages& pages() const { return pages_; }

 private:
  explicit HttpServer(Pages pages) : pages_(std::move(pages)) {}

  const Pages pages_;
  std::string address_;
  std::string problem_;  // what CivetWeb said first, while it starts
  mg_context* context_ = nullptr;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_HTTP_SERVER_H_
