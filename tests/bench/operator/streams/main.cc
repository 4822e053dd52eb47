// rendezvous_load: many workers' rendezvous streams from one process, to see what they cost an
// operator. Each is a launcher's own stream (launcher/rendezvous_stream.h) with TLS, the pod's
// token, heartbeats both ways and Ready; no program is run.
//
//   rendezvous_load WORKERS.json SECONDS
//
// WORKERS.json: {"address", "ca", "workers": [{"namespace", "job", "pod", "uid", "token"}]}. Prints
// one JSON object: how many joined and were told a round, how long that took, and by how much the
// operator's heartbeats came later than announced, while all of them stood for SECONDS.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "common/file.h"
#include "launcher/event_loop.h"
#include "launcher/rendezvous_stream.h"

namespace ringmaster {
namespace {

using launcher::EventLoop;
using launcher::RendezvousStream;
using rendezvous::v1::FromWorker;
using rendezvous::v1::ToWorker;

constexpr std::size_t kMaxFileBytes = 64 << 20;
constexpr int kDialsAtOnce = 32;
constexpr std::chrono::seconds kPatience{240};
constexpr Duration kHeartbeat = std::chrono::milliseconds(500);  // as the operator asks for
constexpr int kTicks = 50;                                       // within one of them

double Milliseconds(SteadyTime::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

struct Tally {
  int joined = 0;
  int in_round = 0;
  int ended = 0;
  bool measuring = false;
  std::vector<double> late_ms;  // of heartbeats, while measuring
  std::string trouble;
};

// One worker. Belongs to the loop's thread.
class Worker {
 public:
  Worker(EventLoop& loop, const nlohmann::json& about, int number, Tally& tally,
         std::function<void()> joined)
      : loop_(loop), number_(number), tally_(tally), joined_(std::move(joined)) {
    rendezvous::v1::Hello& hello = *hello_.mutable_hello();
    hello.set_namespace_(about.at("namespace"));
    hello.set_job(about.at("job"));
    hello.set_pod(about.at("pod"));
    hello.set_pod_uid(about.at("uid"));
    hello.set_token(about.at("token"));
    hello.set_committed_step(-1);
    hello.set_native(true);
  }

  void Dial(const std::string& address, const std::string& ca) {
    stream_ =
        RendezvousStream::Dial(loop_, address, ca,
                               {.connected = [this] { Queue(hello_); },
                                .message = [this](const ToWorker& message) { Take(message); },
                                .written =
                                    [this] {
                                      writing_ = false;
                                      Pump();
                                    },
                                .ended = [this](const absl::Status& status) { Ended(status); }});
  }

  void Take(const ToWorker& message) {
    const SteadyTime now = SystemClock().SteadyNow();
    if (message.has_accepted()) {
      heartbeat_ = std::chrono::milliseconds(message.accepted().heartbeat_ms());
      ++tally_.joined;
      SayReady();
      accepted_ = true;
      joined_();
    } else if (message.has_refused()) {
      Ended(absl::PermissionDeniedError(message.refused().reason()));
    } else if (message.has_heartbeat()) {
      if (tally_.measuring && heard_ != SteadyTime())
        tally_.late_ms.push_back(Milliseconds(now - heard_ - heartbeat_));
      heard_ = now;
    } else if (message.command().has_round() && round_ == 0) {
      round_ = message.command().round().number();
      ++tally_.in_round;
    }
  }

  void SayReady() {
    FromWorker message;
    rendezvous::v1::Ready& ready = *message.mutable_event()->mutable_ready();
    ready.set_address(fmt::format("127.0.0.1:{}", 10000 + number_));
    ready.set_kernels_digest("load");
    Queue(message);
  }

  // Called once per heartbeat.
  void Beat() {
    if (!accepted_ || ended_) return;
    FromWorker message;
    message.mutable_heartbeat()->set_sequence(++sequence_);
    message.mutable_heartbeat()->set_round(round_);
    Queue(message);
  }

 private:
  void Queue(const FromWorker& message) {
    queue_.push_back(message);
    Pump();
  }

  void Pump() {
    if (writing_ || queue_.empty() || ended_ || stream_ == nullptr) return;
    writing_ = true;
    stream_->Write(queue_.front());
    queue_.erase(queue_.begin());
  }

  void Ended(const absl::Status& status) {
    if (ended_) return;
    ended_ = true;
    ++tally_.ended;
    tally_.trouble = status.ToString();
    joined_();
  }

  EventLoop& loop_;
  const int number_;
  Tally& tally_;
  const std::function<void()> joined_;  // or never will
  FromWorker hello_;
  std::unique_ptr<RendezvousStream> stream_;
  std::vector<FromWorker> queue_;
  bool writing_ = false;
  bool accepted_ = false;
  bool ended_ = false;
  Duration heartbeat_{};
  SteadyTime heard_{};
  std::uint64_t sequence_ = 0;
  std::int64_t round_ = 0;
};

double Share(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

class Load {
 public:
  Load(EventLoop& loop, const nlohmann::json& about, Duration measured)
      : loop_(loop), address_(about.at("address")), ca_(about.at("ca")), measured_(measured) {
    for (const nlohmann::json& worker : about.at("workers")) {
      const int number = static_cast<int>(workers_.size());
      workers_.push_back(
          std::make_unique<Worker>(loop_, worker, number, tally_, [this] { DialNext(); }));
    }
  }

  int Run() {
    began_ = SystemClock().SteadyNow();
    for (int i = 0; i < kDialsAtOnce; ++i) DialNext();
    Look();
    Tick(0);
    loop_.After(kPatience, [this] { loop_.Quit(); });
    loop_.Run();
    return Report();
  }

 private:
  void DialNext() {
    if (next_ < workers_.size()) workers_[next_++]->Dial(address_, ca_);
  }

  // Spreads the heartbeats over their interval.
  void Tick(int tick) {
    for (std::size_t i = tick % kTicks; i < workers_.size(); i += kTicks) workers_[i]->Beat();
    loop_.After(kHeartbeat / kTicks, [this, tick] { Tick(tick + 1); });
  }

  // Until all are in a round; then the measurement.
  void Look() {
    const int settled = tally_.in_round + tally_.ended;
    if (settled < static_cast<int>(workers_.size())) {
      loop_.After(std::chrono::milliseconds(50), [this] { Look(); });
      return;
    }
    took_ms_ = Milliseconds(SystemClock().SteadyNow() - began_);
    std::puts("all there");
    std::fflush(stdout);
    tally_.measuring = true;
    loop_.After(measured_, [this] { loop_.Quit(); });
  }

  int Report() {
    std::vector<double>& late = tally_.late_ms;
    std::sort(late.begin(), late.end());
    const nlohmann::json report = {
        {"workers", workers_.size()},     {"joined", tally_.joined},
        {"inRound", tally_.in_round},     {"ended", tally_.ended},
        {"trouble", tally_.trouble},      {"joinSeconds", took_ms_ / 1000},
        {"heartbeats", late.size()},      {"lateMedianMs", Share(late, 0.5)},
        {"lateP99Ms", Share(late, 0.99)}, {"lateMaxMs", Share(late, 1)}};
    std::puts(report.dump().c_str());
    std::fflush(stdout);
    return tally_.ended == 0 && took_ms_ > 0 ? 0 : 1;
  }

  EventLoop& loop_;
  const std::string address_;
  const std::string ca_;
  const Duration measured_;
  Tally tally_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_ = 0;
  SteadyTime began_;
  double took_ms_ = 0;
};

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: rendezvous_load WORKERS.json SECONDS\n", stderr);
    return 2;
  }
  const auto text = ReadFile(argv[1], kMaxFileBytes);
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", text.status().ToString().c_str());
    return 2;
  }
  const auto loop = EventLoop::Create();
  if (!loop.ok()) {
    std::fprintf(stderr, "%s\n", loop.status().ToString().c_str());
    return 2;
  }
  Load load(**loop, nlohmann::json::parse(*text), std::chrono::seconds(std::atoi(argv[2])));
  const int code = load.Run();
  // Not in order: a thousand streams are broken off by the end of the process.
  std::_Exit(code);
}

}  // namespace
}  // namespace ringmaster

int main(int argc, char** argv) {
  return ringmaster::Main(argc, argv);
}
