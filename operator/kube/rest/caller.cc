#include "operator/kube/rest/caller.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/rest/read_json.h"
#include "operator/kube/rest/server_clock.h"
#include "operator/kube/rest/status_errors.h"

namespace ringmaster::kube::rest {
namespace {

SteadyTime Now() {
  return SteadyTime::clock::now();
}

absl::Status CheckOptions(const RestOptions& options) {
  using std::chrono_literals::operator""ms;
  using std::chrono_literals::operator""s;
  if (options.attempt_timeout <= 0ms || options.call_timeout <= 0ms || options.watch_timeout < 1s ||
      options.watch_idle_timeout <= 0ms || options.max_attempts < 1 || options.burst < 1 ||
      options.page_size < 0 || options.max_body_bytes == 0 || options.max_event_bytes == 0) {
    return absl::InvalidArgumentError(
        "REST client: a time-out, a bound or a number is not positive");
  }
  return absl::OkStatus();
}

// Clients that failed together do not come back together.
double Jitter() {
  thread_local std::mt19937 random{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.75, 1.25)(random);
}

TransportOptions TransportOptionsOf(const Config& config, const RestOptions& options,
                                    const Credentials& credentials) {
  return {.server = config.server,
          .tls_server_name = config.tls_server_name,
          .ca_pem = credentials.authority_pem.empty() ? config.ca_pem : credentials.authority_pem,
          .insecure_skip_tls_verify = config.insecure_skip_tls_verify,
          .client_certificate_pem = credentials.client_certificate_pem,
          .client_key_pem = credentials.client_key_pem,
          .user_agent = options.user_agent,
          .stream_idle_timeout = options.watch_idle_timeout};
}

std::string Describe(const HttpRequest& request) {
  return fmt::format("{} {}", request.method, request.path.substr(0, request.path.find('?')));
}

absl::Status Stopped() {
  return absl::CancelledError("the client was stopped");
}

// What a load balancer says in the server's place; its clock is not the server's.
bool MayBeAGateways(int http_code) {
  return http_code >= 502 && http_code <= 504;
}

}  // namespace

Caller::Caller(Config config, RestOptions options)
    : config_(std::move(config)),
      options_(std::move(options)),
      limiter_(options_.qps, options_.burst) {}

absl::StatusOr<std::unique_ptr<Caller>> Caller::Create(Config config, RestOptions options) {
  RM_RETURN_IF_ERROR(CheckOptions(options));
  if (config.origin.empty()) config.origin = "the API server's configuration";
  std::unique_ptr<Caller> caller(new Caller(std::move(config), std::move(options)));
  // With the certificate left out: a plugin that provides it runs at the first call.
  RM_RETURN_IF_ERROR(caller->TransportFor({}).status());
  return caller;
}

Caller::~Caller() {
  Stop();
}

void Caller::Stop() {
  std::vector<std::shared_ptr<Transport>> transports;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
    transports.push_back(transport_);
    for (const auto& retired : retired_) transports.push_back(retired.lock());
  }
  for (const auto& transport : transports) {
    if (transport) transport->CancelAll();
  }
}

absl::StatusOr<Json> Caller::Call(HttpRequest request, bool repeatable, const Reading& reading) {
  Json answer;
  RM_RETURN_IF_ERROR(Repeat(
      std::move(request), repeatable,
      [&](const std::shared_ptr<Transport>& transport, const HttpRequest& sent, SteadyTime until) {
        const auto response = transport->Call(sent, options_.max_body_bytes, until);
        Outcome outcome = OutcomeOf(response, sent);
        if (!outcome.status.ok()) return outcome;
        answer = ReadJson(response->body, reading);
        if (answer.is_discarded()) {
          outcome.http_code = 0;
          outcome.status = absl::UnavailableError(Describe(sent) + ": the answer is no JSON");
        }
        return outcome;
      }));
  return answer;
}

absl::StatusOr<std::string> Caller::CallText(HttpRequest request) {
  std::string text;
  RM_RETURN_IF_ERROR(Repeat(
      std::move(request), /*repeatable=*/true,
      [&](const std::shared_ptr<Transport>& transport, const HttpRequest& sent, SteadyTime until) {
        auto response = transport->Call(sent, options_.max_body_bytes, until);
        Outcome outcome = OutcomeOf(response, sent);
        if (outcome.status.ok()) text = std::move(response->body);
        return outcome;
      }));
  return text;
}

absl::StatusOr<OpenStream> Caller::Open(HttpRequest request) {
  OpenStream stream;
  RM_RETURN_IF_ERROR(Repeat(
      std::move(request), /*repeatable=*/true,
      [&](const std::shared_ptr<Transport>& transport, const HttpRequest& sent, SteadyTime until) {
        auto opened = transport->Open(sent, options_.max_event_bytes, until);
        if (!opened.ok()) return OutcomeOf(opened.status(), sent);
        Outcome outcome = OutcomeOf(opened->response, sent);
        if (outcome.status.ok() && !opened->lines) {
          outcome.status = absl::UnavailableError(Describe(sent) + ": the answer is no stream");
        }
        if (outcome.status.ok()) stream = {transport, std::move(opened->lines)};
        return outcome;
      }));
  return stream;
}

absl::Status Caller::Repeat(HttpRequest request, bool repeatable, const Attempt& attempt) {
  const SteadyTime deadline = Now() + options_.call_timeout;
  request.fresh_connection = !repeatable;
  bool renewed = false;
  for (int attempts = 1;; ++attempts) {
    RM_RETURN_IF_ERROR(AwaitTurn(deadline));
    RM_ASSIGN_OR_RETURN(const Credentials credentials, CurrentCredentials());
    RM_ASSIGN_OR_RETURN(const auto transport, TransportFor(credentials));
    request.bearer_token = credentials.bearer_token;
    const SteadyTime asked = Now();
    const Outcome outcome =
        attempt(transport, request, std::min(deadline, asked + options_.attempt_timeout));
    if (options_.server_clock != nullptr && !MayBeAGateways(outcome.http_code))
      options_.server_clock->Observe(outcome.date, asked);
    if (outcome.status.ok()) return outcome.status;
    if (!Pause(Now())) return Stopped();
    if (outcome.http_code == 401 && config_.credentials && !renewed) {
      config_.credentials->Refused(credentials);
      renewed = true;
      continue;
    }
    if (attempts >= options_.max_attempts || !MayRepeat(outcome, repeatable)) return outcome.status;
    const SteadyTime next = Now() + PauseAfter(outcome, attempts);
    if (next >= deadline) return outcome.status;
    if (!Pause(next)) return Stopped();
  }
}

Caller::Outcome Caller::OutcomeOf(const absl::StatusOr<HttpResponse>& response,
                                  const HttpRequest& request) {
  if (!response.ok()) return {.status = response.status()};
  if (response->code >= 200 && response->code < 300)
    return {.http_code = response->code, .date = response->date};
  return {
      .status = ErrorOf(response->code, response->body, response->is_audited, Describe(request)),
      .http_code = response->code,
      .retry_after = RetryAfter(response->retry_after, response->body),
      .date = response->date};
}

bool Caller::MayRepeat(const Outcome& outcome, bool repeatable) const {
  switch (outcome.http_code) {
    case 0:
      return repeatable && (outcome.status.code() == absl::StatusCode::kUnavailable ||
                            outcome.status.code() == absl::StatusCode::kDeadlineExceeded);
    case 429:
      return true;
    case 500:
    case 502:
    case 503:
    case 504:
      // With Retry-After the server says that it has turned the request away.
      return repeatable || outcome.retry_after.has_value();
    default:
      return false;
  }
}

Duration Caller::PauseAfter(const Outcome& outcome, int attempts) const {
  const double backoff = std::min<double>(static_cast<double>(options_.max_backoff.count()),
                                          static_cast<double>(options_.first_backoff.count()) *
                                              static_cast<double>(1 << std::min(attempts - 1, 20)));
  const Duration pause(static_cast<std::int64_t>(backoff * Jitter() * 1000));
  return outcome.retry_after ? std::max<Duration>(pause, *outcome.retry_after) : pause;
}

bool Caller::Pause(SteadyTime until) {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_until(lock, until, [&] { return stopping_; });
}

absl::Status Caller::AwaitTurn(SteadyTime deadline) {
  const auto turn = limiter_.Reserve(Now(), deadline);
  if (!turn) {
    return absl::ResourceExhaustedError(fmt::format(
        "REST client: more calls are waiting than {} a second can serve in time; raise the limit",
        options_.qps));
  }
  return Pause(*turn) ? absl::OkStatus() : Stopped();
}

absl::StatusOr<Credentials> Caller::CurrentCredentials() {
  if (!config_.credentials) return Credentials{};
  auto credentials = config_.credentials->Get();
  if (!credentials.ok()) return Annotate(credentials.status(), config_.origin);
  return credentials;
}

absl::StatusOr<std::shared_ptr<Transport>> Caller::TransportFor(const Credentials& credentials) {
  std::lock_guard lock(mutex_);
  if (stopping_) return Stopped();
  if (transport_ && credentials.authority_pem == transport_credentials_.authority_pem &&
      credentials.client_certificate_pem == transport_credentials_.client_certificate_pem &&
      credentials.client_key_pem == transport_credentials_.client_key_pem) {
    return transport_;
  }
  auto made = Transport::Create(TransportOptionsOf(config_, options_, credentials));
  if (!made.ok()) return Annotate(made.status(), config_.origin);
  std::erase_if(retired_, [](const auto& retired) { return retired.expired(); });
  if (transport_) retired_.push_back(transport_);
  transport_ = *std::move(made);
  transport_credentials_ = credentials;
  return transport_;
}

}  // namespace ringmaster::kube::rest
