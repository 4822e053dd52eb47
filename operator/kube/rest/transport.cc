#include "operator/kube/rest/transport.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/rest/http_connection.h"
#include "operator/kube/rest/line_connection.h"
#include "operator/kube/rest/live_set.h"
#include "operator/kube/rest/server_address.h"
#include "operator/kube/rest/tls.h"

namespace ringmaster::kube::rest {
namespace {

// A server keeps a connection for longer than this; what stands between may not.
constexpr std::chrono::seconds kKeptFor{30};
constexpr std::size_t kStreamReadBytes = std::size_t{64} << 10;

// What may stand in a header: a token with a line end in it would begin another one.
bool IsHeaderText(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 32 && c < 127; });
}

absl::Status CheckText(const HttpRequest& request) {
  if (!IsHeaderText(request.bearer_token))
    return absl::UnauthenticatedError("the token has characters that no header may have");
  if (!IsHeaderText(request.path))
    return BadRequest("the path has characters that must be escaped");
  return absl::OkStatus();
}

// Connections that no call uses at the moment. The one that was used last is used next, so that
// those that are too many grow old. Thread-safe.
class KeptConnections {
 public:
  // Null where there is none.
  std::shared_ptr<HttpConnection> Take() {
    const std::lock_guard lock(mutex_);
    DropOld();
    while (!kept_.empty()) {
      auto taken = std::move(kept_.back().connection);
      kept_.pop_back();
      if (taken->IsQuiet()) return taken;
    }
    return nullptr;
  }

  void Put(std::shared_ptr<HttpConnection> connection) {
    const std::lock_guard lock(mutex_);
    DropOld();
    kept_.push_back({std::move(connection), SteadyTime::clock::now()});
  }

  void Clear() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
  }

 private:
  struct Kept {
    std::shared_ptr<HttpConnection> connection;
    SteadyTime since;
  };

  void DropOld() {
    const SteadyTime oldest = SteadyTime::clock::now() - kKeptFor;
    std::erase_if(kept_, [&](const Kept& kept) { return kept.since < oldest; });
  }

  std::mutex mutex_;
  std::vector<Kept> kept_;  // guarded by mutex_
};

class Lines : public LineStream {
 public:
  explicit Lines(std::shared_ptr<LineConnection> connection) : connection_(std::move(connection)) {}

  absl::StatusOr<std::string> Next(SteadyTime deadline) override {
    return connection_->Next(deadline);
  }
  bool IsExhausted() const override { return connection_->IsExhausted(); }
  void Stop() override { connection_->Stop(); }

 private:
  const std::shared_ptr<LineConnection> connection_;
};

class HttpTransport : public Transport {
 public:
  HttpTransport(ServerAddress address, std::shared_ptr<TlsSetup> tls,
                const TransportOptions& options)
      : address_(std::move(address)),
        tls_(std::move(tls)),
        user_agent_(options.user_agent),
        verifies_(!options.insecure_skip_tls_verify),
        stream_idle_timeout_(options.stream_idle_timeout) {}

  ~HttpTransport() override { HttpTransport::CancelAll(); }

  void CancelAll() override {
    stopped_ = true;
    for (const auto& connection : streams_.All()) connection->Stop();
    for (const auto& connection : calls_.All()) connection->Stop();
    kept_.Clear();
  }

  absl::StatusOr<HttpResponse> Call(const HttpRequest& request, std::size_t max_body_bytes,
                                    SteadyTime deadline) override {
    RM_RETURN_IF_ERROR(CheckText(request));
    return Named(request, Guarded([&] { return CallOverAny(request, max_body_bytes, deadline); }));
  }

  absl::StatusOr<StreamResponse> Open(const HttpRequest& request, std::size_t max_line_bytes,
                                      SteadyTime deadline) override {
    RM_RETURN_IF_ERROR(CheckText(request));
    StreamResponse answer;
    RM_ASSIGN_OR_RETURN(answer.response, Named(request, Guarded([&] {
                                                 return OpenLines(request, max_line_bytes, deadline,
                                                                  answer.lines);
                                               })));
    return answer;
  }

 private:
  using Answer = absl::StatusOr<HttpResponse>;

  // What the libraries throw, where no descriptor is left, say, is an error like another.
  template <typename Call>
  static Answer Guarded(const Call& call) {
    try {
      return call();
    } catch (const std::exception& e) {
      return absl::UnavailableError(e.what());
    } catch (...) {
      return absl::UnavailableError("the connection failed");
    }
  }

  HttpConnection::Options ConnectionOptions() const {
    return {.address = address_, .tls = tls_, .user_agent = user_agent_};
  }

  Answer CallOverAny(const HttpRequest& request, std::size_t max_body_bytes, SteadyTime deadline) {
    if (!request.fresh_connection) {
      if (const auto kept = kept_.Take()) {
        Answer answer = CallOver(kept, request, max_body_bytes, deadline);
        const bool gone = absl::IsUnavailable(answer.status()) && !kept->Heard();
        if (!gone || stopped_) return answer;
      }
    }
    const auto connection = std::make_shared<HttpConnection>(ConnectionOptions());
    calls_.Add(connection);
    if (stopped_) return absl::CancelledError("the client was stopped");
    RM_RETURN_IF_ERROR(connection->Connect(deadline));
    return CallOver(connection, request, max_body_bytes, deadline);
  }

  Answer CallOver(const std::shared_ptr<HttpConnection>& connection, const HttpRequest& request,
                  std::size_t max_body_bytes, SteadyTime deadline) {
    RM_ASSIGN_OR_RETURN(HttpResponse response, connection->Ask(request, deadline));
    RM_RETURN_IF_ERROR(connection->ReadAll(response.body, max_body_bytes, deadline));
    if (connection->MayFollow() && !stopped_) kept_.Put(connection);
    return response;
  }

  Answer OpenLines(const HttpRequest& request, std::size_t max_line_bytes, SteadyTime deadline,
                   std::unique_ptr<LineStream>& lines) {
    HttpConnection::Options options = ConnectionOptions();
    options.read_bytes = kStreamReadBytes;
    const auto connection = std::make_shared<LineConnection>(
        std::move(options), LineConnection::Bounds{.idle = stream_idle_timeout_,
                                                   .line_bytes = max_line_bytes,
                                                   .body_bytes = max_line_bytes});
    streams_.Add(connection);
    if (stopped_) return absl::CancelledError("the client was stopped");
    Answer response = connection->Open(request, deadline);
    if (response.ok() && response->code == 200) lines = std::make_unique<Lines>(connection);
    return response;
  }

  // The error with the request and the server in front.
  Answer Named(const HttpRequest& request, Answer response) {
    if (response.ok()) return response;
    const std::string what =
        fmt::format("{} {}: {}", request.method, request.path.substr(0, request.path.find('?')),
                    address_.HostHeader());
    if (const std::string problem = tls_ && verifies_ ? tls_->TakeProblem() : "";
        !problem.empty()) {
      return absl::UnauthenticatedError(
          fmt::format("{}: the server's certificate is not trusted: {}", what, problem));
    }
    return Annotate(response.status(), what);
  }

  const ServerAddress address_;
  const std::shared_ptr<TlsSetup> tls_;  // null for http
  const std::string user_agent_;
  const bool verifies_;
  const std::chrono::milliseconds stream_idle_timeout_;
  std::atomic<bool> stopped_ = false;
  KeptConnections kept_;
  LiveSet<HttpConnection> calls_;
  LiveSet<LineConnection> streams_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> Transport::Create(const TransportOptions& options) {
  RM_ASSIGN_OR_RETURN(ServerAddress address, ParseServerAddress(options.server));
  std::shared_ptr<TlsSetup> tls;
  if (address.tls) {
    RM_ASSIGN_OR_RETURN(
        tls, TlsSetup::Create(
                 {.peer = options.tls_server_name.empty() ? address.host : options.tls_server_name,
                  .ca_pem = options.ca_pem,
                  .client_certificate_pem = options.client_certificate_pem,
                  .client_key_pem = options.client_key_pem,
                  .insecure_skip_verify = options.insecure_skip_tls_verify}));
  }
  return std::make_unique<HttpTransport>(std::move(address), std::move(tls), options);
}

}  // namespace ringmaster::kube::rest
