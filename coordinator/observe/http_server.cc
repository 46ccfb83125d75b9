#include "coordinator/observe/http_server.h"

#include <civetweb.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace tandem::coordinator {
namespace {

// Of pages: nothing from elsewhere, no frames around them, nothing kept.
constexpr char kHeaders[] =
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'\r\n"
    "Connection: close\r\n";

void Send(mg_connection* connection, const char* status, const std::string& type,
          const std::string& body, bool with_body) {
  const std::string head =
      absl::StrCat("HTTP/1.1 ", status, "\r\n", kHeaders, "Content-Type: ", type, "\r\n",
                   "Content-Length: ", body.size(), "\r\n\r\n");
  mg_write(connection, head.data(), head.size());
  if (with_body) mg_write(connection, body.data(), body.size());
}

int Answer(mg_connection* connection, void* server) {
  const mg_request_info& request = *mg_get_request_info(connection);
  const std::string_view method = request.request_method;
  constexpr char kText[] = "text/plain; charset=utf-8";
  if (request.content_length > 0 || mg_get_header(connection, "Transfer-Encoding") != nullptr) {
    // Closes the connection; after other answers the library would wait for the body.
    mg_send_http_error(connection, 413, "%s", "requests have no body");
    return 413;
  }
  if (method != "GET" && method != "HEAD") {
    Send(connection, "405 Method Not Allowed", kText, "only GET and HEAD\n", true);
    return 405;
  }
  const HttpServer::Pages& pages = static_cast<HttpServer*>(server)->pages();
  const auto found = pages.find(std::string_view(request.local_uri));
  if (found == pages.end()) {
    Send(connection, "404 Not Found", kText, "there is no such page\n", method == "GET");
    return 404;
  }
  Send(connection, "200 OK", found->second.type, found->second.make(), method == "GET");
  return 200;
}

// "127.0.0.1:9100": the host as it was asked for, the port that is bound.
std::string BoundAddress(const mg_context* context, const std::string& asked) {
  mg_server_port port{};
  mg_get_server_ports(context, 1, &port);
  return absl::StrCat(asked.substr(0, asked.rfind(':') + 1), port.port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& flag,
                                                              const std::string& address,
                                                              Pages pages) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(pages)));
  mg_callbacks callbacks{};
  callbacks.log_message = [](const mg_connection* connection, const char* message) {
    if (connection == nullptr || mg_get_context(connection) == nullptr) return 1;
    auto* self = static_cast<HttpServer*>(mg_get_user_data(mg_get_context(connection)));
    // The first problem is the cause.
    if (self != nullptr && self->context_ == nullptr && self->problem_.empty()) {
      self->problem_ = message;
    }
    return 1;  // handled: bytes that are no HTTP are no news
  };
  // Requests are one packet from nearby: who takes longer must not keep a thread from others.
  const char* options[] = {"listening_ports",    address.c_str(), "num_threads", "16",
                           "request_timeout_ms", "1000",          nullptr};
  mg_init_library(0);
  server->context_ = mg_start(&callbacks, server.get(), options);
  if (server->context_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        flag, ": cannot listen on ", address, ": ",
        server->problem_.empty() ? "the HTTP server does not start" : server->problem_));
  }
  mg_set_request_handler(server->context_, "**", Answer, server.get());
  server->address_ = BoundAddress(server->context_, address);
  return server;
}

HttpServer::~HttpServer() {
  if (context_ != nullptr) mg_stop(context_);
  mg_exit_library();
}

}  // namespace tandem::coordinator
