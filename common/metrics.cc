#include "common/metrics.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include "common/host_port.h"
#include "common/status.h"

namespace ringmaster::metrics {
namespace {

class PrometheusCounter : public Counter {
 public:
  explicit PrometheusCounter(prometheus::Counter& series) : series_(series) {}
  void Increment(double by) override { series_.Increment(by); }
  double Value() const override { return series_.Value(); }

 private:
  prometheus::Counter& series_;
};

class PrometheusGauge : public Gauge {
 public:
  explicit PrometheusGauge(prometheus::Gauge& series) : series_(series) {}
  void Set(double value) override { series_.Set(value); }
  double Value() const override { return series_.Value(); }

 private:
  prometheus::Gauge& series_;
};

class PrometheusHistogram : public Histogram {
 public:
  explicit PrometheusHistogram(prometheus::Histogram& series) : series_(series) {}
  void Observe(double value) override { series_.Observe(value); }

 private:
  prometheus::Histogram& series_;
};

using Key = std::pair<std::string, Labels>;

constexpr auto kKnockEvery = std::chrono::milliseconds(5);

// Connects and hangs up.
void Knock(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    (void)::connect(fd, found->ai_addr, found->ai_addrlen);
    ::close(fd);
  }
  ::freeaddrinfo(found);
}

class ExposerServer : public Server {
 public:
  ExposerServer(const std::string& address, std::string host,
                std::shared_ptr<prometheus::Registry> registry)
      : host_(std::move(host)), registry_(std::move(registry)) {
    // Two threads and a short patience: a client that connects and says nothing keeps nobody out.
    exposer_.emplace(std::vector<std::string>{"listening_ports", address, "num_threads", "2",
                                              "request_timeout_ms", "5000"});
    exposer_->RegisterCollectable(registry_);
  }

  // The web server looks whether it is to stop when somebody connects, and else every two seconds;
  // it has no option for that. So somebody connects until it has stopped.
  ~ExposerServer() override {
    std::jthread knocker([host = host_, port = port()](const std::stop_token& stopped) {
      for (; !stopped.stop_requested(); std::this_thread::sleep_for(kKnockEvery)) Knock(host, port);
    });
    exposer_.reset();
  }

  int port() const override { return exposer_->GetListeningPorts().front(); }

 private:
  const std::string host_;
  std::shared_ptr<prometheus::Registry> registry_;
  std::optional<prometheus::Exposer> exposer_;
};

}  // namespace

struct Registry::State {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::mutex mutex;
  std::map<Key, std::unique_ptr<Counter>> counters;
  std::map<Key, std::unique_ptr<Gauge>> gauges;
  std::map<Key, std::unique_ptr<Histogram>> histograms;
};

std::vector<double> ExponentialBuckets(double start, double factor, int count) {
  std::vector<double> bounds;
  for (double bound = start; count > 0; --count, bound *= factor) bounds.push_back(bound);
  return bounds;
}

Registry::Registry() : state_(std::make_shared<State>()) {}
Registry::~Registry() = default;

Counter& Registry::AddCounter(const std::string& name, const std::string& help,
                              const Labels& labels) {
  std::lock_guard lock(state_->mutex);
  auto& slot = state_->counters[{name, labels}];
  if (!slot) {
    auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(*state_->registry);
    slot = std::make_unique<PrometheusCounter>(family.Add(labels));
  }
  return *slot;
}

Gauge& Registry::AddGauge(const std::string& name, const std::string& help, const Labels& labels) {
  std::lock_guard lock(state_->mutex);
  auto& slot = state_->gauges[{name, labels}];
  if (!slot) {
    auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(*state_->registry);
    slot = std::make_unique<PrometheusGauge>(family.Add(labels));
  }
  return *slot;
}

Histogram& Registry::AddHistogram(const std::string& name, const std::string& help,
                                  const std::vector<double>& buckets, const Labels& labels) {
  std::lock_guard lock(state_->mutex);
  auto& slot = state_->histograms[{name, labels}];
  if (!slot) {
    auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(*state_->registry);
    slot = std::make_unique<PrometheusHistogram>(family.Add(labels, buckets));
  }
  return *slot;
}

std::string Registry::Text() const {
  return prometheus::TextSerializer().Serialize(state_->registry->Collect());
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Registry& registry,
                                                      const std::string& address) {
  RM_ASSIGN_OR_RETURN(const HostAndPort parts, ParseHostPort(address));
  try {
    return std::unique_ptr<Server>(
        std::make_unique<ExposerServer>(address, parts.host, registry.state_->registry));
  } catch (const std::exception&) {  // it knows no more than that
    return absl::UnavailableError(fmt::format(
        "metrics endpoint {}: cannot listen there: the port is taken, or the address is not this "
        "machine's",
        address));
  }
}

}  // namespace ringmaster::metrics
