#include "coordinator/engine/stream_writers.h"

#include <iterator>
#include <utility>

namespace tandem::coordinator {

StreamWriters::StreamWriters(size_t num_writers, OverFn on_over) : on_over_(std::move(on_over)) {
  for (size_t i = 0; i < num_writers; ++i) {
    Writer& writer = *writers_.emplace_back(std::make_unique<Writer>());
    writer.thread = std::thread([this, &writer] { Run(writer); });
  }
}

StreamWriters::~StreamWriters() { Close(); }

void StreamWriters::Deliver(std::vector<Delivery> deliveries) {
  for (Delivery& delivery : deliveries) {
    writers_[delivery.handle % writers_.size()]->share.push_back(std::move(delivery));
  }
  for (const auto& writer : writers_) {
    if (writer->share.empty()) continue;
    {
      MutexLock lock(writer->mutex);
      if (writer->waiting.empty()) {
        writer->waiting.swap(writer->share);
      } else {
        writer->waiting.insert(writer->waiting.end(),
                               std::make_move_iterator(writer->share.begin()),
                               std::make_move_iterator(writer->share.end()));
      }
    }
    writer->changed.NotifyOne();
    writer->share.clear();
  }
}

void StreamWriters::Run(Writer& writer) {
  std::vector<Delivery> batch;
  while (true) {
    {
      MutexLock lock(writer.mutex);
      writer.changed.Wait(lock, [&]() TANDEM_REQUIRES(writer.mutex) {
        return writer.closed || !writer.waiting.empty();
      });
      if (writer.waiting.empty()) return;
      batch.swap(writer.waiting);
    }
    for (auto& [handle, stream, update] : batch) {
      const bool last = update.last();
      const bool stopped = !stream->OnUpdate(std::move(update));
      if (last || stopped) on_over_(handle, stopped && !last);
      stream->Flush();
    }
    batch.clear();
  }
}

void StreamWriters::Close() {
  for (const auto& writer : writers_) {
    {
      MutexLock lock(writer->mutex);
      writer->closed = true;
    }
    writer->changed.NotifyOne();
  }
  for (const auto& writer : writers_) {
    if (writer->thread.joinable()) writer->thread.join();
  }
}

}  // namespace tandem::coordinator
