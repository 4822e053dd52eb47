// Prometheus metrics of a program: counters, gauges and histograms, and the endpoint that serves
// them.
//
// Names are `ringmaster_<component>_<what>_<unit>`. Labels come from closed sets: a result, a
// cause, an operation; never a job's or a pod's name, whose number has no bound. A series is made
// once, at start, and then only updated:
//
//   metrics::Registry registry;
//   metrics::Counter& passes = registry.AddCounter("ringmaster_operator_reconcile_total",
//   "Reconcile passes.", {{"result", "done"}}); passes.Increment();
//
// Everything here is thread-safe. Series live as long as their registry.
#ifndef RINGMASTER_COMMON_METRICS_H_
#define RINGMASTER_COMMON_METRICS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/web_server.h"

namespace ringmaster::metrics {

using Labels = std::map<std::string, std::string>;

// Only rises.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Increment(double by = 1) = 0;
  virtual double Value() const = 0;
};

// Goes up and down.
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
  virtual double Value() const = 0;
};

// Counts observations in buckets, whose upper bounds are given in rising order; +Inf is added.
class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(double value) = 0;
};

// `count` bounds from `start`, each `factor` times the one before.
std::vector<double> ExponentialBuckets(double start, double factor, int count);

// Owns the series. Asking again for the same name and labels returns the same series; help and
// buckets are the first call's.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter& AddCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& AddGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram& AddHistogram(const std::string& name, const std::string& help,
                          const std::vector<double>& buckets, const Labels& labels = {});

  // All series in the text format that Prometheus scrapes.
  std::string Text() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The page of the registry, which must outlive its server.
WebPage MetricsPage(const Registry& registry);

// Serves GET /metrics until it goes; the registry must outlive it.
class Server {
 public:
  // `address` is "host:port", ":port" for all addresses of both families; port 0 takes a free one.
  // kUnavailable when the port is taken.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Registry& registry,
                                                       const std::string& address);
  virtual ~Server() = default;
  virtual int port() const = 0;
};

}  // namespace ringmaster::metrics

#endif  // RINGMASTER_COMMON_METRICS_H_
