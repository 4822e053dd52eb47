#include "tests/support/http.h"

#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>

namespace ringmaster::testing {
namespace {

constexpr timeval kPatience{10, 0};

}  // namespace

UniqueFd ConnectTo(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.Reset();
  return fd;
}

std::string HttpGet(int port, const std::string& path) {
  const UniqueFd fd = ConnectTo(port);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  std::string answer;
  if (!fd.valid() || ::write(fd.get(), request.data(), request.size()) < 0) return answer;
  char buffer[4096];
  for (ssize_t got; (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;)
    answer.append(buffer, static_cast<size_t>(got));
  return answer;
}

}  // namespace ringmaster::testing
