#include "coordinator/engine/stream_writers.h"

#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace tandem::coordinator {
namespace {

// Updates that a queue keeps room for: more are a burst, whose memory is given back.
constexpr size_t kRoom = 256;

void Empty(std::vector<Delivery>& updates) {
  if (updates.capacity() > kRoom) {
    updates = std::vector<Delivery>();
  } else {
    updates.clear();
  }
}

}  // namespace

StreamWriters::StreamWriters(size_t num_writers, OverFn on_over) : on_over_(std::move(on_over)) {
  for (size_t i = 0; i < num_writers; ++i) {
    Writer& writer = *writers_.emplace_back(std::make_unique<Writer>());
    writer.thread = std::thread([this, &writer] { Run(writer); });
  }
  if (num_writers == 0) writers_.emplace_back(std::make_unique<Writer>());
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
    Empty(writer->share);
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
    Pass(batch);
  }
}

void StreamWriters::Pass(std::vector<Delivery>& batch) {
  for (auto& [handle, stream, update] : batch) {
    const bool last = update.last();
    const bool stopped = stream->OnUpdate(std::move(update)).stopped;
    if (last || stopped) on_over_(handle, stopped && !last);
    stream->Flush();
  }
  Empty(batch);
}

void StreamWriters::Write() {
  Writer& writer = *writers_.front();
  TANDEM_CHECK(!writer.thread.joinable()) << "a writer's thread passes the updates";
  std::vector<Delivery> batch;
  {
    MutexLock lock(writer.mutex);
    batch.swap(writer.waiting);
  }
  Pass(batch);
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
  Write();  // what writers without a thread have queued
}

}  // namespace tandem::coordinator
