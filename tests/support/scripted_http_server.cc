#include "tests/support/scripted_http_server.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <unistd.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ringmaster::testing {
namespace {

constexpr int kBacklog = 128;

UniqueFd Listen(const std::string& address, int& port) {
  const bool ipv6 = address.find(':') != std::string::npos;
  UniqueFd fd(socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (ipv6) {
    auto* in = reinterpret_cast<sockaddr_in6*>(&storage);
    in->sin6_family = AF_INET6;
    inet_pton(AF_INET6, address.c_str(), &in->sin6_addr);
    size = sizeof *in;
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&storage);
    in->sin_family = AF_INET;
    inet_pton(AF_INET, address.c_str(), &in->sin_addr);
    size = sizeof *in;
  }
  auto* generic = reinterpret_cast<sockaddr*>(&storage);
  if (!fd.valid() || bind(fd.get(), generic, size) != 0 || listen(fd.get(), kBacklog) != 0 ||
      getsockname(fd.get(), generic, &size) != 0) {
    throw std::runtime_error("cannot listen on " + address);
  }
  port = ntohs(ipv6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                    : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
  return fd;
}

bool ReadSome(int fd, std::string& text) {
  char buffer[1 << 14];
  const ssize_t count = recv(fd, buffer, sizeof buffer, 0);
  if (count <= 0) return false;
  text.append(buffer, static_cast<std::size_t>(count));
  return true;
}

std::string Trim(std::string text) {
  text.erase(0, text.find_first_not_of(" \t"));
  text.erase(text.find_last_not_of(" \t\r") + 1);
  return text;
}

// Takes one request off the front of `text`, reading more as it needs.
std::optional<HttpRequestSeen> ReadRequest(int fd, std::string& text) {
  std::size_t end = std::string::npos;
  while ((end = text.find("\r\n\r\n")) == std::string::npos) {
    if (!ReadSome(fd, text)) return std::nullopt;
  }
  HttpRequestSeen seen;
  const std::string head = text.substr(0, end);
  const std::size_t first = head.find(' ');
  const std::size_t second = head.find(' ', first + 1);
  seen.method = head.substr(0, first);
  seen.target = head.substr(first + 1, second - first - 1);
  std::size_t line = head.find("\r\n");
  while (line != std::string::npos) {
    const std::size_t next = head.find("\r\n", line + 2);
    const std::string header = head.substr(line + 2, next - line - 2);
    const std::size_t colon = header.find(':');
    std::string name = header.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    seen.headers[name] = Trim(header.substr(colon + 1));
    line = next;
  }
  const auto length = seen.headers.find("content-length");
  const std::size_t size =
      length == seen.headers.end() ? 0 : std::strtoul(length->second.c_str(), nullptr, 10);
  while (text.size() < end + 4 + size) {
    if (!ReadSome(fd, text)) return std::nullopt;
  }
  seen.body = text.substr(end + 4, size);
  text.erase(0, end + 4 + size);
  return seen;
}

}  // namespace

bool ServedRequest::Send(std::string_view bytes) {
  while (!bytes.empty() && !closed_) {
    const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return !closed_;
}

void ServedRequest::Close() {
  closed_ = true;
  shutdown(fd_, SHUT_RDWR);
}

void ServedRequest::Reset() {
  closed_ = true;
  const linger hard{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

bool ServedRequest::AwaitClosed(std::chrono::milliseconds patience) {
  pollfd polled{fd_, POLLRDHUP, 0};
  return poll(&polled, 1, static_cast<int>(patience.count())) > 0;
}

HttpScript Answer(int code, std::string body, std::string headers) {
  return [=](ServedRequest& request) {
    request.Send(
        fmt::format("HTTP/1.1 {} Scripted\r\nContent-Type: application/json\r\n{}"
                    "Content-Length: {}\r\n\r\n{}",
                    code, headers, body.size(), body));
  };
}

ScriptedHttpServer::ScriptedHttpServer(const std::string& address)
    : address_(address), listener_(Listen(address, port_)), otherwise_(Answer(404, "")) {
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedHttpServer::~ScriptedHttpServer() {
  ending_ = true;
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  std::vector<std::thread> servers;
  {
    std::lock_guard lock(mutex_);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    servers.swap(servers_);
  }
  for (std::thread& server : servers) server.join();
}

void ScriptedHttpServer::Script(std::vector<HttpScript> scripts) {
  std::lock_guard lock(mutex_);
  scripts_.assign(scripts.begin(), scripts.end());
}

void ScriptedHttpServer::Otherwise(HttpScript script) {
  std::lock_guard lock(mutex_);
  otherwise_ = std::move(script);
}

std::string ScriptedHttpServer::url() const {
  const bool ipv6 = address_.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", ipv6 ? "[" : "", address_, ipv6 ? "]" : "", port_);
}

std::vector<HttpRequestSeen> ScriptedHttpServer::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t ScriptedHttpServer::AwaitRequests(std::size_t count,
                                              std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, patience, [&] { return requests_.size() >= count; });
  return requests_.size();
}

void ScriptedHttpServer::Accept() {
  for (int connection = 1; !ending_; ++connection) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    std::lock_guard lock(mutex_);
    open_.push_back(fd);
    servers_.emplace_back([this, fd, connection] { Serve(fd, connection); });
  }
}

void ScriptedHttpServer::Serve(int fd, int connection) {
  std::string text;
  while (!ending_) {
    auto seen = ReadRequest(fd, text);
    if (!seen) break;
    seen->connection = connection;
    const HttpScript script = NextScript(*seen);
    ServedRequest request(fd, *std::move(seen));
    script(request);
    if (request.closed()) break;
  }
  std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  close(fd);
}

HttpScript ScriptedHttpServer::NextScript(const HttpRequestSeen& seen) {
  std::lock_guard lock(mutex_);
  requests_.push_back(seen);
  arrived_.notify_all();
  if (scripts_.empty()) return otherwise_;
  HttpScript script = std::move(scripts_.front());
  scripts_.pop_front();
  return script;
}

}  // namespace ringmaster::testing
