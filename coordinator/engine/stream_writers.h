// StreamWriters: the threads that hand updates to requests' streams, so that detokenizing, matching
// and sending cost the engine's thread nothing.
//
// A request is bound to one writer by its handle, so its updates stay in order. What waits for a
// writer is bounded by the lengths of the requests in flight, and of those that their streams have
// just stopped; a stream never blocks its writer, so that happens only where the machine is too
// slow.
#ifndef TANDEM_COORDINATOR_ENGINE_STREAM_WRITERS_H_
#define TANDEM_COORDINATOR_ENGINE_STREAM_WRITERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "coordinator/engine/delivery.h"

namespace tandem::coordinator {

class StreamWriters {
 public:
  // Told on a writer's thread that a request's stream has taken its end and is about to send it.
  // `stopped`: the stream itself ended the request, and the engine has yet to hear of it.
  using OverFn = std::function<void(RequestHandle handle, bool stopped)>;

  StreamWriters(size_t num_writers, OverFn on_over);
  ~StreamWriters();  // Close

  // Hands over a step's updates: each writer gets its share at once and is woken at most once.
  // Waits for no stream. One thread calls it.
  void Deliver(std::vector<Delivery> deliveries);
  // Everything that was delivered reaches its stream, then the threads end. Idempotent. No Deliver
  // after it.
  void Close();

 private:
  struct Writer {
    Mutex mutex;
    CondVar changed;
    std::vector<Delivery> waiting TANDEM_GUARDED_BY(mutex);
    bool closed TANDEM_GUARDED_BY(mutex) = false;
    std::vector<Delivery> share;  // of the step being delivered; the delivering thread's
    std::thread thread;
  };

  void Run(Writer& writer);

  const OverFn on_over_;
  std::vector<std::unique_ptr<Writer>> writers_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_STREAM_WRITERS_H_
