#include "operator/rendezvous/join_stream.h"

#include "common/status.h"

namespace ringmaster::rendezvous {

JoinStream* JoinStream::Start(Registry& registry, Greeters& greeters, const std::string& source) {
  std::shared_ptr<JoinStream> stream(new JoinStream(registry, greeters));
  stream->self_ = stream;
  stream->id_ = registry.Opened(stream, source);
  stream->StartRead(&stream->incoming_);
  return stream.get();
}

void JoinStream::Send(const v1::ToWorker& message) {
  std::unique_lock lock(mutex_);
  if (end_ || finished_) return;
  if (queue_.size() >= kQueueLimit) {
    queue_.resize(writing_ ? 1 : 0);
    end_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the worker does not read");
  } else {
    queue_.push_back(message);
  }
  Advance(std::move(lock));
}

void JoinStream::End(const absl::Status& status) {
  std::unique_lock lock(mutex_);
  if (end_ || finished_) return;
  // The canonical codes have the same numbers in abseil and in gRPC.
  end_ = grpc::Status(static_cast<grpc::StatusCode>(status.code()), Message(status));
  Advance(std::move(lock));
}

void JoinStream::Advance(std::unique_lock<std::mutex> lock) {
  if (writing_ || finished_) return;
  if (!queue_.empty()) {
    writing_ = true;
    const v1::ToWorker* next = &queue_.front();
    lock.unlock();
    StartWrite(next);
  } else if (end_ && !greeting_) {
    finished_ = true;
    const grpc::Status status = *end_;
    lock.unlock();
    Finish(status);
  }
}

void JoinStream::OnReadDone(bool ok) {
  if (!ok) return registry_.HalfClosed(id_);
  if (incoming_.has_hello()) {
    {
      std::lock_guard lock(mutex_);
      if (finished_) return;
      greeting_ = true;
    }
    registry_.Queued(id_);
    return greeters_.Post([self = self_] { self->Greet(); });
  }
  registry_.Received(id_, incoming_);
  StartRead(&incoming_);
}

void JoinStream::Greet() {
  registry_.Received(id_, incoming_);
  StartRead(&incoming_);
  std::unique_lock lock(mutex_);
  greeting_ = false;
  Advance(std::move(lock));
}

void JoinStream::OnWriteDone(bool ok) {
  std::unique_lock lock(mutex_);
  writing_ = false;
  queue_.pop_front();
  if (!ok) {
    queue_.clear();
    if (!end_) end_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the worker is gone");
  }
  Advance(std::move(lock));
}

// The worker is gone, or its connection: a stream that waits to be let go would not end otherwise.
void JoinStream::OnCancel() {
  End(absl::CancelledError("the stream broke"));
  bool greeting;
  {
    std::lock_guard lock(mutex_);
    greeting = greeting_;
  }
  // Its turn may come late, and is then the next one's.
  if (greeting) registry_.Closed(id_);
}

void JoinStream::OnDone() {
  registry_.Closed(id_);
  const std::shared_ptr<JoinStream> last = std::move(self_);
}

}  // namespace ringmaster::rendezvous
