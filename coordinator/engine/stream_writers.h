// StreamWriters: the threads that pass updates to requests' streams, which keeps detokenizing, stop
// matching and sending off the engine's thread.
//
// A request is bound to one writer by its handle, so its updates stay in order. A writer's queue is
// bounded by the lengths of the requests in flight and of those just stopped by their streams; a
// stream never blocks its writer, so the queue grows only if the machine is too slow.
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
  // Called on a writer's thread when a request's stream has received its end and is about to send
  // it. `stopped`: the stream ended the request, and the engine has not been notified yet.
  using OverFn = std::function<void(RequestHandle handle, bool stopped)>;

  // `num_writers` 0: no thread is started, and Write does what a writer does (simulations).
  StreamWriters(size_t num_writers, OverFn on_over);
  ~StreamWriters();  // Close

  // Queues a step's updates: each writer gets its share at once and is woken at most once. Does not
  // wait for streams. Called by one thread.
  void Deliver(std::vector<Delivery> deliveries);
  // Passes what is queued to its streams. REQUIRES: there are no writers' threads.
  void Write();
  // Passes all queued updates to their streams, then ends the threads. Idempotent. No Deliver
  // afterwards.
  void Close();

 private:
  struct Writer {
    Mutex mutex;
    CondVar changed;
    std::vector<Delivery> waiting TANDEM_GUARDED_BY(mutex);
    bool closed TANDEM_GUARDED_BY(mutex) = false;
    std::vector<Delivery> share;  // of the step being delivered; used by the delivering thread only
    std::thread thread;
  };

  void Run(Writer& writer);
  // Passes a batch to its streams, and empties it.
  void Pass(std::vector<Delivery>& batch);

  const OverFn on_over_;
  std::vector<std::unique_ptr<Writer>> writers_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_STREAM_WRITERS_H_
