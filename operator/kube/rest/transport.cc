#include "operator/kube/rest/transport.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <cpprest/http_client.h>
#include <fmt/format.h>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/rest/body_sink.h"
#include "operator/kube/rest/exchange.h"
#include "operator/kube/rest/line_connection.h"
#include "operator/kube/rest/live_set.h"
#include "operator/kube/rest/server_address.h"
#include "operator/kube/rest/thread_pool.h"
#include "operator/kube/rest/tls.h"

namespace ringmaster::kube::rest {
namespace {

namespace http = web::http;
using http::client::http_client;
using http::client::http_client_config;
using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>;

constexpr std::chrono::seconds kLetGo{5};

absl::Status StatusOf(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const http::http_exception& e) {
    if (e.error_code().value() == ETIMEDOUT) {
      return absl::DeadlineExceededError("nothing was heard from the server for too long");
    }
    return absl::UnavailableError(e.what());
  } catch (const std::exception& e) {
    return absl::UnavailableError(e.what());
  } catch (...) {
    return absl::UnavailableError("the connection failed");
  }
}

// What may stand in a header: a token with a line end in it would begin another one.
bool IsHeaderText(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 32 && c < 127; });
}

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

class CppRest : public Transport {
 public:
  CppRest(ServerAddress address, std::string user_agent, std::shared_ptr<TlsSetup> tls,
          const TransportOptions& options)
      : address_(std::move(address)),
        user_agent_(std::move(user_agent)),
        tls_(std::move(tls)),
        insecure_(options.insecure_skip_tls_verify),
        idle_timeout_(options.idle_timeout),
        stream_idle_timeout_(options.stream_idle_timeout),
        calls_(BaseUri(), MakeConfig(options.idle_timeout)) {}

  ~CppRest() override {
    CppRest::CancelAll();
    SettleThreadPool(SteadyTime::clock::now() + kLetGo);
  }

  void CancelAll() override {
    for (const auto& connection : streams_.All()) connection->Stop();
    const auto open = exchanges_.All();
    const SteadyTime deadline = SteadyTime::clock::now() + kLetGo;
    for (const auto& exchange : open) exchange->Cancel();
    for (const auto& exchange : open) exchange->AwaitEnd(deadline);
  }

  absl::StatusOr<HttpResponse> Call(const HttpRequest& request, std::size_t max_body_bytes,
                                    SteadyTime deadline) override {
    RM_ASSIGN_OR_RETURN(const auto exchange, Send(request, max_body_bytes));
    return Named(request, Whole(*exchange, deadline));
  }

  absl::StatusOr<StreamResponse> Open(const HttpRequest& request, std::size_t max_line_bytes,
                                      SteadyTime deadline) override {
    RM_RETURN_IF_ERROR(CheckToken(request));
    StreamResponse answer;
    RM_ASSIGN_OR_RETURN(answer.response,
                        Named(request, OpenLines(request, max_line_bytes, deadline, answer.lines)));
    return answer;
  }

 private:
  // What the library throws, where no descriptor is left, say, is an error like another.
  absl::StatusOr<HttpResponse> OpenLines(const HttpRequest& request, std::size_t max_line_bytes,
                                         SteadyTime deadline, std::unique_ptr<LineStream>& lines) {
    try {
      const auto connection = std::make_shared<LineConnection>(
          LineConnection::Options{.address = address_,
                                  .tls = tls_,
                                  .insecure_skip_tls_verify = insecure_,
                                  .user_agent = user_agent_,
                                  .idle_timeout = stream_idle_timeout_,
                                  .max_line_bytes = max_line_bytes,
                                  .max_body_bytes = max_line_bytes});
      streams_.Add(connection);
      auto response = connection->Open(request, deadline);
      if (response.ok() && response->code == 200) lines = std::make_unique<Lines>(connection);
      return response;
    } catch (...) {
      return StatusOf(std::current_exception());
    }
  }

  // The library hands an IPv6 address with brackets to the resolver, which knows no brackets. It
  // finds the port behind the last colon, so the address goes without them; the Host header, which
  // needs them, is set on each request.
  web::uri BaseUri() const {
    return web::uri(
        fmt::format("{}://{}:{}", address_.tls ? "https" : "http", address_.host, address_.port));
  }

  http_client_config MakeConfig(std::chrono::milliseconds idle_timeout) const {
    http_client_config config;
    config.set_timeout(idle_timeout);
    config.set_max_redirects(0);  // it would show the token to whoever it is sent to
    if (!tls_) return config;
    config.set_validate_certificates(!insecure_);
    config.set_tlsext_sni_enabled(false);  // it would send the Host header, port and all
    config.set_ssl_context_callback(
        [tls = tls_](boost::asio::ssl::context& context) { tls->Apply(context.native_handle()); });
    config.set_nativehandle_options([tls = tls_](http::client::native_handle handle) {
      tls->NameServer(static_cast<TlsStream*>(handle)->native_handle());
    });
    return config;
  }

  static absl::Status CheckToken(const HttpRequest& request) {
    if (IsHeaderText(request.bearer_token)) return absl::OkStatus();
    return absl::UnauthenticatedError("the token has characters that no header may have");
  }

  absl::StatusOr<http::http_request> Make(const HttpRequest& request) const {
    RM_RETURN_IF_ERROR(CheckToken(request));
    try {
      http::http_request made(request.method);
      made.set_request_uri(web::uri(address_.path + request.path));
      http::http_headers& headers = made.headers();
      headers.add("Host", address_.HostHeader());
      headers.add("User-Agent", user_agent_);
      headers.add("Accept", "application/json");
      if (!request.bearer_token.empty()) {
        headers.add("Authorization", "Bearer " + request.bearer_token);
      }
      if (!request.content_type.empty()) {
        // As bytes: the library reads a body that is given as text through a pointer of another
        // type.
        made.set_body(std::vector<unsigned char>(request.body.begin(), request.body.end()));
        headers.set_content_type(request.content_type);
      }
      return made;
    } catch (const std::exception& e) {
      return BadRequest(fmt::format("{} {}: {}", request.method, request.path, e.what()));
    }
  }

  absl::StatusOr<std::shared_ptr<Exchange>> Send(const HttpRequest& request,
                                                 std::size_t max_body_bytes) {
    RM_ASSIGN_OR_RETURN(http::http_request made, Make(request));
    const auto exchange = std::make_shared<Exchange>(max_body_bytes);
    try {
      using Buffer = Concurrency::streams::streambuf<uint8_t>;
      const Buffer buffer(std::make_shared<BodySink>(exchange->body()));
      made.set_response_stream(buffer.create_ostream());
      exchanges_.Add(exchange);
      if (request.fresh_connection) {
        // A client of its own has an empty pool.
        http_client fresh(BaseUri(), MakeConfig(idle_timeout_));
        Follow(fresh.request(made, exchange->token()), exchange);
      } else {
        Follow(calls_.request(made, exchange->token()), exchange);
      }
    } catch (...) {
      exchange->OnEnd(StatusOf(std::current_exception()));
    }
    return exchange;
  }

  // Every task's exception is looked at: the library aborts the process for one that is not.
  static void Follow(pplx::task<http::http_response> sent,
                     const std::shared_ptr<Exchange>& exchange) {
    sent.then([exchange](pplx::task<http::http_response> head) {
      try {
        const http::http_response response = head.get();
        ResponseHead received{.code = response.status_code()};
        const auto it = response.headers().find("Retry-After");
        if (it != response.headers().end()) received.retry_after = it->second;
        exchange->OnHead(std::move(received));
        response.content_ready().then([exchange](pplx::task<http::http_response> body) {
          try {
            body.get();
            exchange->OnEnd(absl::OkStatus());
          } catch (...) {
            exchange->OnEnd(StatusOf(std::current_exception()));
          }
        });
      } catch (...) {
        exchange->OnEnd(StatusOf(std::current_exception()));
      }
    });
  }

  static absl::StatusOr<HttpResponse> Whole(Exchange& exchange, SteadyTime deadline) {
    // For the end first: each time that a caller is woken costs as much as reading its answer.
    exchange.AwaitEnd(deadline);
    auto head = exchange.AwaitHead(deadline);
    if (!head.ok()) {
      exchange.Cancel();
      return head.status();
    }
    auto body = exchange.body()->TakeAll(deadline);
    if (!body.ok()) {
      exchange.Cancel();
      return body.status();
    }
    return HttpResponse{head->code, std::move(head->retry_after), *std::move(body)};
  }

  // The error with the request and the server in front.
  absl::StatusOr<HttpResponse> Named(const HttpRequest& request,
                                     absl::StatusOr<HttpResponse> response) {
    if (response.ok()) return response;
    const std::string what =
        fmt::format("{} {}: {}", request.method, request.path.substr(0, request.path.find('?')),
                    address_.HostHeader());
    if (const std::string problem = tls_ && !insecure_ ? tls_->TakeProblem() : "";
        !problem.empty()) {
      return absl::UnauthenticatedError(
          fmt::format("{}: the server's certificate is not trusted: {}", what, problem));
    }
    return Annotate(response.status(), what);
  }

  const ServerAddress address_;
  const std::string user_agent_;
  const std::shared_ptr<TlsSetup> tls_;  // null for http
  const bool insecure_;
  const std::chrono::milliseconds idle_timeout_;
  const std::chrono::milliseconds stream_idle_timeout_;
  http_client calls_;
  LiveSet<Exchange> exchanges_;
  LiveSet<LineConnection> streams_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> Transport::Create(const TransportOptions& options) {
  RM_ASSIGN_OR_RETURN(ServerAddress address, ParseServerAddress(options.server));
  std::shared_ptr<TlsSetup> tls;
  if (address.tls) {
    RM_ASSIGN_OR_RETURN(
        tls,
        TlsSetup::Create({options.tls_server_name.empty() ? address.host : options.tls_server_name,
                          options.ca_pem, options.client_certificate_pem, options.client_key_pem}));
  }
  SizeThreadPool(options.threads);
  try {
    return std::make_unique<CppRest>(std::move(address), options.user_agent, std::move(tls),
                                     options);
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(fmt::format("server: \"{}\": {}", options.server, e.what()));
  }
}

}  // namespace ringmaster::kube::rest
