#include "common/web_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <netdb.h>
#include <poll.h>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/host_port.h"
#include "common/status.h"

namespace ringmaster {
namespace {

// Room for many scrapers, and a short patience: clients that connect and say nothing keep nobody
// out for long.
constexpr size_t kMostConnections = 64;
constexpr Duration kPatience = std::chrono::seconds(5);
constexpr size_t kMostRequestBytes = 16 * 1024;
constexpr int kBacklog = 128;

using AddressInfo = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
using Pages = std::map<std::string, WebPage>;

absl::StatusOr<AddressInfo> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    return absl::InvalidArgumentError(fmt::format("'{}': {}", host, ::gai_strerror(error)));
  return AddressInfo(found, &::freeaddrinfo);
}

// An IPv6 address that stands for all takes IPv4 too. Invalid, with errno, where it cannot be had.
UniqueFd ListenAt(const addrinfo& info) {
  UniqueFd fd(::socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fd;
  const int on = 1;
  const int off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (info.ai_family == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const bool listens =
      ::bind(fd.get(), info.ai_addr, info.ai_addrlen) == 0 && ::listen(fd.get(), kBacklog) == 0;
  return listens ? std::move(fd) : UniqueFd();
}

absl::StatusOr<UniqueFd> ListenAt(const std::string& address) {
  const bool everywhere = address.starts_with(':');
  RM_ASSIGN_OR_RETURN(const HostAndPort parts,
                      ParseHostPort(everywhere ? "[::]" + address : address));
  RM_ASSIGN_OR_RETURN(AddressInfo info, Resolve(parts.host, parts.port));
  UniqueFd fd = ListenAt(*info);
  if (!fd.valid() && everywhere && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
    RM_ASSIGN_OR_RETURN(info, Resolve("0.0.0.0", parts.port));  // a machine without IPv6
    fd = ListenAt(*info);
  }
  if (fd.valid()) return fd;
  return absl::UnavailableError(
      fmt::format("cannot serve at {}: {}", address, std::strerror(errno)));
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string_view Reason(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Other";
  }
}

constexpr std::string_view kGet = "GET";
constexpr std::string_view kHead = "HEAD";

// "GET /path?query HTTP/1.1" and headers that mean nothing to us.
WebAnswer AnswerTo(std::string_view request, const Pages& pages) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(" HTTP/1.");
  if (method_end == std::string_view::npos || target_end == std::string_view::npos ||
      target_end <= method_end) {
    return {.code = 400, .body = "this is not HTTP\n"};
  }
  const std::string_view method = line.substr(0, method_end);
  if (method != kGet && method != kHead)
    return {.code = 405, .body = "only GET and HEAD are answered\n"};
  std::string_view path = line.substr(method_end + 1, target_end - method_end - 1);
  path = path.substr(0, path.find('?'));
  const auto page = pages.find(std::string(path));
  if (page == pages.end()) return {.code = 404, .body = "no such page\n"};
  return page->second();
}

// To HEAD what GET would be answered, without the body.
std::string Encode(const WebAnswer& answer, bool head) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      answer.code, Reason(answer.code), answer.type, answer.body.size(), head ? "" : answer.body);
}

// One request and its answer; then it is over.
class Connection {
 public:
  Connection(UniqueFd fd, SteadyTime end) : fd_(std::move(fd)), end_(end) {}

  pollfd Wanted() const {
    return {.fd = fd_.get(),
            .events = static_cast<short>(answer_.empty() ? POLLIN : POLLOUT),
            .revents = 0};
  }
  SteadyTime end() const { return end_; }

  // Reads or writes what can be without waiting. False when it is over.
  bool Go(const Pages& pages) {
    if (answer_.empty() && !Read(pages)) return false;
    return answer_.empty() || Write();
  }

 private:
  bool Read(const Pages& pages) {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    request_.append(bytes.data(), static_cast<size_t>(got));
    const bool complete = request_.find("\r\n\r\n") != std::string::npos;
    if (!complete) return request_.size() < kMostRequestBytes;
    answer_ = Encode(AnswerTo(request_, pages), request_.starts_with(kHead));
    return true;
  }

  bool Write() {
    const ssize_t sent =
        ::send(fd_.get(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<size_t>(sent);
    return sent_ < answer_.size();
  }

  UniqueFd fd_;
  SteadyTime end_;
  std::string request_;
  std::string answer_;
  size_t sent_ = 0;
};

// One thread waits for all connections.
class PollingServer : public WebServer {
 public:
  PollingServer(UniqueFd listener, UniqueFd wake, Pages pages)
      : pages_(std::move(pages)),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        port_(PortOf(listener_.get())),
        thread_([this](const std::stop_token& stopped) { Serve(stopped); }) {}

  ~PollingServer() override {
    thread_.request_stop();
    ::eventfd_write(wake_.get(), 1);
  }

  int port() const override { return port_; }

 private:
  void Serve(const std::stop_token& stopped) {
    std::vector<pollfd> ready;
    while (!stopped.stop_requested()) {
      ready = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
               {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      for (const Connection& connection : connections_) ready.push_back(connection.Wanted());
      ::poll(ready.data(), ready.size(), MillisecondsToTheNextEnd());
      size_t index = 2;
      const SteadyTime now = SystemClock().SteadyNow();
      std::erase_if(connections_, [&](Connection& connection) {
        const bool can_go = ready[index++].revents != 0;
        return now >= connection.end() || (can_go && !connection.Go(pages_));
      });
      if (ready[1].revents != 0) Accept(now);
    }
  }

  int MillisecondsToTheNextEnd() const {
    if (connections_.empty()) return -1;
    const auto left = connections_.front().end() - SystemClock().SteadyNow();  // they end in order
    const auto whole = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return static_cast<int>(std::max<int64_t>(whole, 0));
  }

  void Accept(SteadyTime now) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      // Whoever has said nothing for longest makes room: probes must get through.
      if (connections_.size() >= kMostConnections) connections_.pop_front();
      connections_.emplace_back(std::move(fd), now + kPatience);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it stays ready meanwhile
    }
  }

  const Pages pages_;
  const UniqueFd listener_;
  const UniqueFd wake_;
  const int port_;
  std::list<Connection> connections_;  // of the thread alone
  std::jthread thread_;
};

}  // namespace

WebPage HealthPage(std::function<absl::Status()> check) {
  return [check = std::move(check)] {
    const absl::Status status = check();
    if (status.ok()) return WebAnswer{.body = "ok\n"};
    return WebAnswer{.code = 503, .body = fmt::format("{}\n", Message(status))};
  };
}

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const std::string& address,
                                                            std::map<std::string, WebPage> pages) {
  RM_ASSIGN_OR_RETURN(UniqueFd listener, ListenAt(address));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "eventfd");
  return std::make_unique<PollingServer>(std::move(listener), std::move(wake), std::move(pages));
}

}  // namespace ringmaster
