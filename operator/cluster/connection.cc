#include "operator/cluster/connection.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "operator/manager/trim.h"

namespace ringmaster::cluster {
namespace {

using kube::rest::Config;
using kube::rest::RestClient;
using kube::rest::RestOptions;
using std::chrono::milliseconds;

constexpr char kUserAgent[] = "ringmaster-operator";
// A worker waits for its answer as long as it gets heartbeats; others wait behind it.
constexpr milliseconds kReviewTimeout{10'000};

// A call that is given up in time leaves time for another.
RestOptions Quick(milliseconds timeout, kube::rest::ServerClock& clock) {
  RestOptions options;
  options.server_clock = &clock;
  options.user_agent = kUserAgent;
  options.call_timeout = timeout;
  options.attempt_timeout = timeout;
  return options;
}

}  // namespace

absl::StatusOr<Connection> Connect(const ConnectionOptions& options) {
  RM_ASSIGN_OR_RETURN(const Config config, kube::rest::LoadDefault(options.source));
  Connection made;
  made.ns = config.default_namespace;
  made.origin = config.origin;
  made.clock = std::make_unique<kube::rest::ServerClock>();
  RestOptions work;
  work.server_clock = made.clock.get();
  work.user_agent = kUserAgent;
  work.qps = options.qps;
  work.burst = options.burst;
  work.managed_fields = kube::rest::ManagedFields::kSkip;
  // What the caches keep of it, read no sooner than it is kept.
  work.pod_spec.emplace(manager::kPodSpecRead.begin(), manager::kPodSpecRead.end());
  RM_ASSIGN_OR_RETURN(made.work, RestClient::Connect(config, std::move(work)));
  const auto renewal = std::chrono::duration_cast<milliseconds>(options.renew_deadline / 2);
  RM_ASSIGN_OR_RETURN(made.election, RestClient::Connect(config, Quick(renewal, *made.clock)));
  RM_ASSIGN_OR_RETURN(made.review, RestClient::Connect(config, Quick(kReviewTimeout, *made.clock)));
  return made;
}

}  // namespace ringmaster::cluster
