#include "operator/rendezvous/front_door.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "common/status.h"

namespace ringmaster::rendezvous {
namespace {

// What every HTTP/2 client says first (RFC 9113, section 3.4).
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A TLS record of a handshake, of any version (RFC 8446, section 5.1).
constexpr std::string_view kTlsHandshake = "\x16\x03";

constexpr size_t kMaxGuests = 256;
constexpr int kGuestsOfOneSource = 32;
constexpr int kBacklog = 1024;
constexpr int kPollMilliseconds = 200;

struct AddressInfoDeleter {
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};
using AddressInfo = std::unique_ptr<addrinfo, AddressInfoDeleter>;

absl::StatusOr<AddressInfo> Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(fmt::format("{}: not host:port", address));
  }
  std::string host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  address.c_str() + colon + 1, &hints, &found);
  if (error != 0)
    return absl::InvalidArgumentError(fmt::format("{}: {}", address, ::gai_strerror(error)));
  return AddressInfo(found);
}

absl::StatusOr<UniqueFd> ListenAt(const std::string& address, const addrinfo* info) {
  UniqueFd fd(::socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, address);
  const int on = 1;
  const int off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (info->ai_family == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd.get(), info->ai_addr, info->ai_addrlen) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return absl::UnavailableError(fmt::format("{}: {}", address, std::strerror(errno)));
  }
  return fd;
}

// IPv6 first, which takes IPv4 too unless the address says otherwise; machines without it have the
// other.
absl::StatusOr<UniqueFd> ListenAt(const std::string& address) {
  RM_ASSIGN_OR_RETURN(const AddressInfo all, Resolve(address));
  absl::StatusOr<UniqueFd> listener = absl::UnavailableError(address);
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* info = all.get(); info != nullptr; info = info->ai_next) {
      if (info->ai_family != family) continue;
      listener = ListenAt(address, info);
      if (listener.ok()) return listener;
    }
  }
  return listener;
}

int PortOf(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string HostText(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST] = "";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
  return host;
}

// The first bytes, as they may stand in a log.
std::string Printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes.substr(0, 16)) {
    if (std::isprint(static_cast<unsigned char>(c))) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FrontDoor>> FrontDoor::Open(const std::string& address,
                                                           Language language, Duration patience,
                                                           Admit admit) {
  RM_ASSIGN_OR_RETURN(UniqueFd listener, ListenAt(address));
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return ErrnoStatus(errno, address);
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "eventfd");
  return std::unique_ptr<FrontDoor>(new FrontDoor(
      std::move(listener), std::move(wake), PortOf(bound), language, patience, std::move(admit)));
}

FrontDoor::FrontDoor(UniqueFd listener, UniqueFd wake, int port, Language language,
                     Duration patience, Admit admit)
    : listener_(std::move(listener)),
      wake_(std::move(wake)),
      port_(port),
      opening_(language == Language::kTls ? kTlsHandshake : kPreface),
      patience_(patience),
      admit_(std::move(admit)),
      thread_([this] { Run(); }) {}

FrontDoor::~FrontDoor() {
  const uint64_t one = 1;
  // An eventfd takes a write of one unless it is full, and then it is readable anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void FrontDoor::Run() {
  while (true) {
    // With too many guests, or without a descriptor for one more, the listener waits a while: the
    // kernel's queue holds the next.
    const bool open = guests_.size() < kMaxGuests && !starved_;
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {open ? listener_.get() : -1, POLLIN, 0}};
    for (const Guest& guest : guests_) fds.push_back({guest.fd.get(), POLLIN, 0});
    const bool idle = guests_.empty() && !starved_;
    if (::poll(fds.data(), fds.size(), idle ? -1 : kPollMilliseconds) < 0) continue;
    starved_ = false;
    if (fds[0].revents != 0) return;
    size_t i = 2;
    const SteadyTime now = SystemClock().SteadyNow();
    for (auto guest = guests_.begin(); guest != guests_.end(); ++i) {
      Verdict verdict = fds[i].revents != 0 ? Listen(*guest) : Verdict::kWait;
      if (verdict == Verdict::kWait && now >= guest->until) verdict = Verdict::kRefuse;
      if (verdict == Verdict::kWait) {
        ++guest;
        continue;
      }
      Settle(*guest, verdict);
      guest = guests_.erase(guest);
    }
    if (fds[1].revents != 0) AcceptAll();
  }
}

void FrontDoor::AcceptAll() {
  while (guests_.size() < kMaxGuests) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    UniqueFd fd(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &length,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      starved_ = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
      return;
    }
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::string source = HostText(peer, length);
    MakeRoomFor(source);
    guests_.push_back(Guest{std::move(fd), source, "", SystemClock().SteadyNow() + patience_});
  }
}

// Many workers may share an address behind a node's; but they speak at once, and are listened to
// before one of them has to go.
void FrontDoor::MakeRoomFor(const std::string& source) {
  int guests = 0;
  for (const Guest& guest : guests_) guests += guest.source == source ? 1 : 0;
  for (auto guest = guests_.begin(); guests >= kGuestsOfOneSource; --guests) {
    while (guest->source != source) ++guest;
    const Verdict verdict = Listen(*guest);
    Settle(*guest, verdict == Verdict::kWait ? Verdict::kRefuse : verdict);
    guest = guests_.erase(guest);
  }
}

FrontDoor::Verdict FrontDoor::Listen(Guest& guest) {
  char buffer[kPreface.size()];
  const ssize_t got = ::recv(guest.fd.get(), buffer, opening_.size() - guest.read.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Verdict::kWait : Verdict::kGone;
  // Opened and closed without a word: a port probe, which is nobody's fault.
  if (got == 0) return guest.read.empty() ? Verdict::kGone : Verdict::kRefuse;
  guest.read.append(buffer, got);
  if (!opening_.starts_with(guest.read)) return Verdict::kRefuse;
  return guest.read.size() == opening_.size() ? Verdict::kAdmit : Verdict::kWait;
}

void FrontDoor::Settle(Guest& guest, Verdict verdict) {
  if (verdict == Verdict::kAdmit) return admit_(std::move(guest.fd), guest.read);
  if (verdict == Verdict::kGone) return;
  refusals_.Refused("not a worker", guest.source,
                    guest.read.empty() ? "said nothing in time"
                                       : fmt::format("began with '{}'", Printable(guest.read)));
}

}  // namespace ringmaster::rendezvous
