#include "common/metrics.h"

#include <mutex>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

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

class MetricsServer : public Server {
 public:
  explicit MetricsServer(std::unique_ptr<WebServer> server) : server_(std::move(server)) {}
  int port() const override { return server_->port(); }

 private:
  const std::unique_ptr<WebServer> server_;
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

WebPage MetricsPage(const Registry& registry) {
  return [&registry] {
    return WebAnswer{.type = "text/plain; version=0.0.4; charset=utf-8", .body = registry.Text()};
  };
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Registry& registry,
                                                      const std::string& address) {
  RM_ASSIGN_OR_RETURN(auto server,
                      WebServer::Start(address, {{"/metrics", MetricsPage(registry)}}));
  return std::make_unique<MetricsServer>(std::move(server));
}

}  // namespace ringmaster::metrics
