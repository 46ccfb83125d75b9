// tandem_stub_server: StubService as a program, to measure tandem_load itself and to test it.
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/cli/command.h"
#include "coordinator/startup/stop_signal.h"
#include "tests/load/stub_service.h"

namespace tandem::load {
namespace {

struct StubOptions {
  std::string listen = "127.0.0.1:0";
  uint32_t tokens_per_message = 1;
  Duration token_interval{};
  uint32_t refuse_every = 0;
  uint64_t die_after = 0;
};

absl::Status Serve(const StubOptions& options) {
  coordinator::StopSignal signal;
  TANDEM_ASSIGN_OR_RETURN(
      const auto server,
      StubServer::Start(options.listen, {.tokens_per_message = options.tokens_per_message,
                                         .token_interval = options.token_interval,
                                         .refuse_every = options.refuse_every,
                                         .die_after = options.die_after,
                                         .die = [] { kill(getpid(), SIGKILL); }}));
  std::cout << "ready: listening on " << server->address() << std::endl;
  signal.Wait();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  StubOptions options;
  cli::Command program("tandem_stub_server",
                       "tandem_stub_server: streams token ids that no model computed.",
                       "Example:\n"
                       "  tandem_stub_server --listen 127.0.0.1:50051 --token-interval 10ms");
  program.Add({options.listen, {.flag = "--listen", .help = "HOST:PORT; port 0: a free one"}});
  program.Add({options.tokens_per_message,
               {.flag = "--tokens-per-message", .help = "of an answer", .least = 1, .most = 1000}});
  program.Add({options.token_interval,
               {.flag = "--token-interval", .help = "between messages; 0s: as fast as possible"}});
  program.Add({options.refuse_every,
               {.flag = "--refuse-every", .help = "refuses each request of this number; 0: none"}});
  program.Add({options.die_after,
               {.flag = "--die-after", .help = "dies after this many messages; 0: never"}});
  program.OnRun([&] { return Serve(options); });
  return program.Main(argc, argv);
}

}  // namespace
}  // namespace tandem::load

int main(int argc, char** argv) { return tandem::load::Main(argc, argv); }
