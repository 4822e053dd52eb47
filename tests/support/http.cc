#include "tests/support/http.h"

#include <netdb.h>
#include <unistd.h>

#include <sys/socket.h>

namespace ringmaster::testing {
namespace {

constexpr timeval kPatience{10, 0};

}  // namespace

UniqueFd ConnectTo(int port, const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return {};
  UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  if (::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0) fd.Reset();
  ::freeaddrinfo(found);
  return fd;
}

std::string HttpSay(const UniqueFd& connection, const std::string& text) {
  std::string answer;
  const auto said = ::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL);
  if (said != static_cast<ssize_t>(text.size())) return answer;
  char buffer[4096];
  for (ssize_t got; (got = ::read(connection.get(), buffer, sizeof buffer)) > 0;)
    answer.append(buffer, static_cast<size_t>(got));
  return answer;
}

std::string HttpGet(int port, const std::string& path, const std::string& host) {
  return HttpSay(ConnectTo(port, host), "GET " + path + " HTTP/1.0\r\n\r\n");
}

}  // namespace ringmaster::testing
