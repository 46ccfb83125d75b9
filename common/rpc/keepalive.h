// Keepalive: HTTP/2 pings, by which an end of a connection notices that the other is gone though
// no packet says so.
#ifndef TANDEM_COMMON_RPC_KEEPALIVE_H_
#define TANDEM_COMMON_RPC_KEEPALIVE_H_

namespace tandem {

struct Keepalive {
  int interval_millis;  // from the last byte of a silent peer to the ping
  int answer_millis;    // from the ping until the peer is considered lost
};

// Of a worker's control connection, at both ends: less than 10 s together. An idle worker that is
// silent is lost a little before, by the coordinator's own ping, which says so in the log.
inline constexpr Keepalive kControlKeepalive{.interval_millis = 4'000, .answer_millis = 5'000};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_KEEPALIVE_H_
