// kube::Client over the API server's REST interface, the reviewer of tokens that goes with it, and
// what only a real cluster has: logs of pods, the scale subresource.
//
//   RM_ASSIGN_OR_RETURN(rest::Config config, rest::LoadDefault({}));
//   RM_ASSIGN_OR_RETURN(auto client, rest::RestClient::Connect(std::move(config), {}));
//   RM_ASSIGN_OR_RETURN(kube::Json pod, client->Get(kube::kPod, {"default", "digits-0-0"}));
//
// Retries: a call that the server answers with 429, 500, 502, 503 or 504, or whose connection
// breaks, is made again with back-off (never sooner than Retry-After) until call_timeout. Whether a
// write whose connection broke has happened is unknown; it is made again where that cannot do harm:
// reads, deletes, applies, and writes that carry a resourceVersion. Such a repeated call may report
// the first one's success as kNotFound (Delete) or kAborted (the resourceVersion is no longer the
// stored one). A Create of a given name may report it as kAlreadyExists, which its callers resolve
// by the owner's UID. A Create with generateName is never repeated.
//
// Threads: calls block their caller, who drives the connection; the client has no thread of its
// own. Connections are kept for the next call. Each open watch or log holds one of its own, which
// the thread that reads it drives. No exception leaves.
//
// Memory: a body is refused beyond max_body_bytes, a watch event beyond max_event_bytes. A reader
// that lags behind its watch stops the socket, not the memory from growing.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_REST_CLIENT_H_
#define RINGMASTER_OPERATOR_KUBE_REST_REST_CLIENT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/client.h"
#include "operator/kube/rest/config.h"
#include "operator/kube/rest/pod_log.h"
#include "operator/kube/rest/read_json.h"
#include "operator/kube/token_reviewer.h"

namespace ringmaster::kube::rest {

class ServerClock;

struct RestOptions {
  // Behaviour.
  std::string user_agent =
      "ringmaster";  // also the field manager that plain writes are noted under
  // From the first byte sent to the last received, of one attempt.
  std::chrono::milliseconds attempt_timeout{30'000};
  // A whole call: its place in the rate limit's queue, its attempts, the pauses between them.
  std::chrono::milliseconds call_timeout{60'000};
  // How long the server keeps a watch open: it ends with kUnavailable and is taken up again. Above
  // the minute between bookmarks, so that a quiet watch has learnt a newer position before it ends.
  // The client cuts one that is open for 30 seconds longer than this.
  std::chrono::seconds watch_timeout{300};
  // A watch on which nothing is heard for so long, not even a bookmark, is taken to be dead.
  std::chrono::milliseconds watch_idle_timeout{100'000};
  int max_attempts = 6;
  std::chrono::milliseconds first_backoff{250};  // doubles with each attempt, with jitter
  std::chrono::milliseconds max_backoff{10'000};

  // Load on the server: so many calls a second on average (a watch counts once), so many at once
  // after a pause. qps 0 is no limit.
  double qps = 500;
  int burst = 1000;
  // kSkip: no answer and no event has metadata.managedFields, which take long to read.
  ManagedFields managed_fields = ManagedFields::kRead;
  // Of pods no answer and no event has more members of spec than these. Nothing: all of it. An
  // object that was read so must not be written back as a whole.
  std::optional<std::vector<std::string>> pod_spec;
  // Learns from each answer what time it is at the server; null where nobody wants to know. It must
  // outlive the client, and measure by the machine's steady clock.
  ServerClock* server_clock = nullptr;
  // Items in one response of a List without a limit; the pages are joined.
  std::int64_t page_size = 500;

  // Bounds on memory.
  std::size_t max_body_bytes = std::size_t{256} << 20;
  std::size_t max_event_bytes = std::size_t{8} << 20;
};

class Caller;

class RestClient final : public Client, public TokenReviewer {
 public:
  // Checks the configuration and makes the client; sends nothing. kInvalidArgument when the
  // server's address, its authority or an option cannot be used; a client certificate that cannot
  // be used is reported by each call, because it may be replaced.
  static absl::StatusOr<std::unique_ptr<RestClient>> Connect(Config config, RestOptions options);

  // As Stop. No other call may be running; watches may outlive the client.
  ~RestClient() override;

  // Ends all calls and watches at once with kCancelled, and every later one: for a program that is
  // told to end while calls wait for a server that is away. From any thread; idempotent.
  void Stop();

  // GET of a path below the server's address, such as "/version", "/readyz" or
  // "/apis/training.ringmaster.dev/v1alpha1": discovery, and questions that are not about an
  // object. Answers that are no JSON come as a JSON string.
  absl::StatusOr<Json> GetPath(std::string_view path);

  absl::StatusOr<Json> Get(const ResourceType& type, const ObjectKey& key) override;
  absl::StatusOr<ObjectList> List(const ResourceType& type, std::string_view ns,
                                  const ListOptions& options) override;
  absl::StatusOr<std::unique_ptr<WatchStream>> Watch(const ResourceType& type, std::string_view ns,
                                                     const WatchOptions& options) override;
  absl::StatusOr<Json> Create(const ResourceType& type, const Json& object) override;
  absl::StatusOr<Json> Update(const ResourceType& type, const Json& object) override;
  absl::StatusOr<Json> Patch(const ResourceType& type, const ObjectKey& key,
                             const Json& patch) override;
  absl::StatusOr<Json> PatchStatus(const ResourceType& type, const ObjectKey& key,
                                   const Json& status, std::string_view resource_version) override;
  absl::StatusOr<Json> Apply(const ResourceType& type, const Json& object,
                             const ApplyOptions& options) override;
  absl::Status Delete(const ResourceType& type, const ObjectKey& key,
                      const DeleteOptions& options) override;

  // Opens what a container has written. kNotFound: no such pod. kInvalidArgument: the container has
  // not started yet, or there is none of that name; the message says which.
  absl::StatusOr<std::unique_ptr<LogStream>> Log(const ObjectKey& pod, const LogOptions& options);

  // Sets the replicas of an object through its scale subresource, whoever set them before. Errors
  // as of Patch.
  absl::Status Scale(const ResourceType& type, const ObjectKey& key, std::int64_t replicas);

  // By a TokenReview. kUnauthenticated also when the token is good but not bound to a pod.
  absl::StatusOr<PodIdentity> ReviewToken(std::string_view token,
                                          std::string_view audience) override;

 private:
  explicit RestClient(std::unique_ptr<Caller> caller);

  Reading ReadingOf(const ResourceType& type) const;
  absl::StatusOr<ObjectList> ListPage(const ResourceType& type, std::string_view ns,
                                      const ListOptions& options);
  absl::StatusOr<ObjectList> ListAll(const ResourceType& type, std::string_view ns,
                                     const ListOptions& options);

  const std::unique_ptr<Caller> caller_;
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_REST_CLIENT_H_
