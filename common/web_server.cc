#include "common/web_server.h"

#include <CivetServer.h>
#include <chrono>
#include <exception>
#include <netdb.h>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>

#include "common/host_port.h"
#include "common/status.h"

namespace ringmaster {
namespace {

// Two threads and a short patience: a client that connects and says nothing keeps nobody out.
constexpr char kThreads[] = "2";
constexpr char kPatienceMilliseconds[] = "5000";
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

// Every address of both families is "+port" to civetweb, and IPv6 alone "[::]:port".
std::string ListeningPort(const std::string& address) {
  if (address.starts_with(':')) return "+" + address.substr(1);
  if (address.starts_with("[::]:")) return "+" + address.substr(5);
  return address;
}

class PageHandler : public CivetHandler {
 public:
  explicit PageHandler(WebPage page) : page_(std::move(page)) {}

  bool handleGet(CivetServer*, mg_connection* connection) override {
    const WebAnswer answer = page_();
    const std::string text = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        answer.code, mg_get_response_code_text(connection, answer.code), answer.type,
        answer.body.size(), answer.body);
    mg_write(connection, text.data(), text.size());
    return true;
  }

 private:
  const WebPage page_;
};

class CivetWebServer : public WebServer {
 public:
  CivetWebServer(const std::string& address, std::string host, std::map<std::string, WebPage> pages)
      : host_(std::move(host)) {
    server_.emplace(std::vector<std::string>{"listening_ports", ListeningPort(address),
                                             "num_threads", kThreads, "request_timeout_ms",
                                             kPatienceMilliseconds});
    port_ = server_->getListeningPorts().front();
    for (auto& [path, page] : pages) {
      handlers_.push_back(std::make_unique<PageHandler>(std::move(page)));
      server_->addHandler(path + "$", *handlers_.back());
    }
  }

  // The web server looks whether it is to stop when somebody connects, and else every two seconds;
  // it has no option for that. So somebody connects until it has stopped.
  ~CivetWebServer() override {
    std::jthread knocker([host = host_, port = port_](const std::stop_token& stopped) {
      for (; !stopped.stop_requested(); std::this_thread::sleep_for(kKnockEvery)) Knock(host, port);
    });
    server_.reset();
  }

  int port() const override { return port_; }

 private:
  const std::string host_;
  int port_ = 0;
  std::vector<std::unique_ptr<PageHandler>> handlers_;
  std::optional<CivetServer> server_;
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
  RM_ASSIGN_OR_RETURN(const HostAndPort parts,
                      ParseHostPort(address.starts_with(':') ? "0.0.0.0" + address : address));
  try {
    return std::make_unique<CivetWebServer>(address, parts.host, std::move(pages));
  } catch (const std::exception&) {  // it knows no more than that
    return absl::UnavailableError(fmt::format(
        "cannot serve at {}: the port is taken, or the address is not this machine's", address));
  }
}

}  // namespace ringmaster
