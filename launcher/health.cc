#include "launcher/health.h"

#include <utility>

#include <fmt/format.h>

#include "common/log.h"

namespace ringmaster::launcher {

Health::Health(EventLoop& loop, Options options, std::function<absl::Status()> ready)
    : loop_(loop), options_(std::move(options)), ready_(std::move(ready)) {
  Look();
  auto server =
      WebServer::Start(options_.address, {{"/healthz", HealthPage([this] { return Alive(); })},
                                          {"/readyz", HealthPage([this] { return Ready(); })}});
  if (server.ok()) {
    server_ = *std::move(server);
  } else {
    log::Warning("no health pages are served", {{"error", server.status()}});
  }
}

Health::~Health() {
  server_.reset();
  loop_.Cancel(timer_);
}

void Health::Look() {
  absl::Status status = ready_();
  {
    std::lock_guard lock(mutex_);
    looked_ = SystemClock().SteadyNow();
    status_ = std::move(status);
  }
  timer_ = loop_.After(options_.look_every, [this] { Look(); });
}

absl::Status Health::Alive() const {
  std::lock_guard lock(mutex_);
  const auto still = std::chrono::duration_cast<Duration>(SystemClock().SteadyNow() - looked_);
  if (still <= options_.longest_turn) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("the launcher has stood still for {}", FormatDuration(still)));
}

// What a loop that stands still last said is no longer true.
absl::Status Health::Ready() const {
  if (absl::Status alive = Alive(); !alive.ok()) return alive;
  std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace ringmaster::launcher
