#include "operator/kube/rest/http_connection.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include "common/status.h"
#include "operator/kube/rest/status_errors.h"

namespace ringmaster::kube::rest {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using Parser = beast::http::response_parser<beast::http::buffer_body>;

constexpr std::uint32_t kMaxHeadBytes = std::uint32_t{64} << 10;

absl::Status ConnectionStopped() {
  return absl::CancelledError("the call was stopped");
}

absl::Status Broken(const error_code& error) {
  return absl::UnavailableError(error.message());
}

// The whole request as one text: a piece that is written by itself is a record and a packet of its
// own.
std::string TextOf(const HttpRequest& request, const ServerAddress& address,
                   const std::string& user_agent) {
  std::string text =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: application/json\r\n",
                  request.method, address.path, request.path, address.HostHeader(), user_agent);
  if (!request.bearer_token.empty())
    text += fmt::format("Authorization: Bearer {}\r\n", request.bearer_token);
  if (!request.content_type.empty()) {
    text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", request.content_type,
                        request.body.size());
  }
  text += "\r\n";
  text += request.body;
  return text;
}

// What a name's look-up leaves behind.
struct LookUp {
  std::optional<absl::Status> ended;
  std::vector<tcp::endpoint> found;
};

absl::Status LookUpName(const std::string& host, unsigned short port,
                        std::vector<tcp::endpoint>& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* all = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &all);
  if (error != 0) return absl::UnavailableError(fmt::format("{}: {}", host, ::gai_strerror(error)));
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    tcp::endpoint endpoint;
    if (one->ai_addrlen > endpoint.capacity()) continue;
    endpoint.resize(one->ai_addrlen);
    std::memcpy(endpoint.data(), one->ai_addr, one->ai_addrlen);
    endpoint.port(port);
    found.push_back(endpoint);
  }
  ::freeaddrinfo(all);
  return absl::OkStatus();
}

}  // namespace

class HttpConnection::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)), socket_(loop_), chunk_(options_.read_bytes) {
    // Without it the library reads half a kilobyte at a time.
    buffer_.reserve(options_.read_bytes);
  }
  ~Impl() {
    Close();
    while (reading_ && !read_ended_) loop_.run_one();  // it writes to what is destroyed next
  }

  absl::Status Connect(SteadyTime deadline) {
    RM_ASSIGN_OR_RETURN(const std::vector<tcp::endpoint> addresses, Addresses(deadline));
    RM_RETURN_IF_ERROR(Do(deadline, [&](auto done) {
      asio::async_connect(socket_, addresses,
                          [done](const error_code& error, const tcp::endpoint&) { done(error); });
    }));
    {
      const std::lock_guard lock(mutex_);
      connected_ = true;
    }
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    return options_.tls == nullptr ? absl::OkStatus() : Encrypt(deadline);
  }

  absl::Status Send(const HttpRequest& request, SteadyTime deadline) {
    const std::string text = TextOf(request, options_.address, options_.user_agent);
    return Do(deadline, [&](auto done) {
      OnStream([&](auto& stream) {
        asio::async_write(stream, asio::buffer(text),
                          [done](const error_code& error, std::size_t) { done(error); });
      });
    });
  }

  absl::Status ReadHead(SteadyTime deadline) {
    parser_.emplace();
    parser_->header_limit(kMaxHeadBytes);
    parser_->body_limit(
        std::numeric_limits<std::uint64_t>::max());  // "none" refuses all (Boost 1.74)
    return Do(deadline, [&](auto done) {
      OnStream([&](auto& stream) {
        beast::http::async_read_header(
            stream, buffer_, *parser_,
            [done](const error_code& error, std::size_t) { done(error); });
      });
    });
  }

  HttpResponse Head() const {
    HttpResponse head{.code = static_cast<int>(parser_->get().result_int())};
    head.retry_after = std::string(parser_->get()[beast::http::field::retry_after]);
    head.date = std::string(parser_->get()[beast::http::field::date]);
    head.is_audited = parser_->get().count(kAuditIdHeader) > 0;
    return head;
  }

  void Forget() { parser_.reset(); }
  bool Heard() const { return parser_ && parser_->got_some(); }
  bool IsWhole() const { return parser_ && parser_->is_done(); }
  // What came behind the answer was not asked for.
  bool MayFollow() const { return IsWhole() && parser_->keep_alive() && buffer_.size() == 0; }
  bool IsQuiet() {
    char next = 0;
    const ssize_t seen = ::recv(socket_.native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    return seen < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  absl::Status ReadSome(std::string& text, SteadyTime deadline) {
    if (parser_->is_done()) return absl::OkStatus();
    if (!reading_) {
      parser_->get().body().data = chunk_.data();
      parser_->get().body().size = chunk_.size();
      parser_->get().body().more = true;
      reading_ = true;
      read_ended_.reset();
      OnStream([&](auto& stream) {
        beast::http::async_read_some(
            stream, buffer_, *parser_,
            [this](const error_code& error, std::size_t) { read_ended_ = error; });
      });
    }
    RM_RETURN_IF_ERROR(RunUntil(read_ended_, deadline));
    reading_ = false;
    text.append(chunk_.data(), chunk_.size() - parser_->get().body().size);
    const error_code error = *read_ended_;
    return error && error != beast::http::error::need_buffer ? Broken(error) : absl::OkStatus();
  }

  bool IsStopped() const { return stopped_; }
  void Stop() {
    stopped_ = true;
    asio::post(loop_, [] {});  // wakes who waits in RunUntil
    const std::lock_guard lock(mutex_);
    if (connected_) ::shutdown(socket_.native_handle(), SHUT_RDWR);
  }

  void Close() {
    const std::lock_guard lock(mutex_);
    connected_ = false;
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  // An address is not looked up. A name is, by a thread that nobody waits for: nothing can end a
  // look-up before it ends by itself.
  absl::StatusOr<std::vector<tcp::endpoint>> Addresses(SteadyTime deadline) {
    const std::string& host = options_.address.host;
    const auto port = static_cast<unsigned short>(options_.address.port);
    error_code not_one;
    const auto address = asio::ip::make_address(host, not_one);
    if (!not_one) return std::vector{tcp::endpoint(address, port)};
    const auto look_up = std::make_shared<LookUp>();
    std::thread([host, port, look_up, waits = weak_from_this()] {
      std::vector<tcp::endpoint> found;
      absl::Status ended = LookUpName(host, port, found);
      const auto connection = waits.lock();
      if (connection == nullptr) return;
      asio::post(connection->loop_, [look_up, ended = std::move(ended), found = std::move(found)] {
        look_up->found = found;
        look_up->ended = ended;
      });
    }).detach();
    RM_RETURN_IF_ERROR(RunUntil(look_up->ended, deadline));
    RM_RETURN_IF_ERROR(*look_up->ended);
    return std::move(look_up->found);
  }

  absl::Status Encrypt(SteadyTime deadline) {
    context_.emplace(options_.tls->ShareContext());
    tls_.emplace(socket_, *context_);
    options_.tls->NameServer(tls_->native_handle());
    return Do(deadline,
              [&](auto done) { tls_->async_handshake(asio::ssl::stream_base::client, done); });
  }

  template <typename Use>
  void OnStream(const Use& use) {
    if (tls_) {
      use(*tls_);
    } else {
      use(socket_);
    }
  }

  // Starts an operation and waits for it. One that is not done in time is at its end with the
  // connection: its handler, which writes to this frame, runs before.
  template <typename Start>
  absl::Status Do(SteadyTime deadline, const Start& start) {
    std::optional<error_code> ended;
    start([&ended](const error_code& error) { ended = error; });
    const absl::Status waited = RunUntil(ended, deadline);
    if (!waited.ok()) {
      Close();
      while (!ended) loop_.run_one();
      return waited;
    }
    return *ended ? Broken(*ended) : absl::OkStatus();
  }

  template <typename Ended>
  absl::Status RunUntil(const std::optional<Ended>& ended, SteadyTime deadline) {
    while (true) {
      if (stopped_) return ConnectionStopped();
      if (ended) return absl::OkStatus();
      if (loop_.poll_one() == 0 && loop_.run_one_until(deadline) == 0)
        return absl::DeadlineExceededError("no answer came in time");
    }
  }

  const Options options_;
  asio::io_context loop_{1};
  const asio::executor_work_guard<asio::io_context::executor_type> never_out_of_work_{
      loop_.get_executor()};
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  bool connected_ = false;  // guarded by mutex_, as is opening and closing the socket from then on
  tcp::socket socket_;
  std::optional<asio::ssl::context> context_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;  // of the answer that is being read
  std::vector<char> chunk_;
  bool reading_ = false;  // into chunk_
  std::optional<error_code> read_ended_;
};

HttpConnection::HttpConnection(Options options)
    : impl_(std::make_shared<Impl>(std::move(options))) {}
HttpConnection::~HttpConnection() = default;

absl::Status HttpConnection::Connect(SteadyTime deadline) {
  return impl_->Connect(deadline);
}

absl::StatusOr<HttpResponse> HttpConnection::Ask(const HttpRequest& request, SteadyTime deadline) {
  impl_->Forget();
  RM_RETURN_IF_ERROR(impl_->Send(request, deadline));
  RM_RETURN_IF_ERROR(impl_->ReadHead(deadline));
  return impl_->Head();
}

bool HttpConnection::Heard() const {
  return impl_->Heard();
}

absl::Status HttpConnection::ReadSome(std::string& text, SteadyTime deadline) {
  return impl_->ReadSome(text, deadline);
}

absl::Status HttpConnection::ReadAll(std::string& text, std::size_t max_bytes,
                                     SteadyTime deadline) {
  while (!impl_->IsWhole()) {
    // What has arrived is read without waiting: a server that never stops sending is late, too.
    if (SteadyTime::clock::now() >= deadline)
      return absl::DeadlineExceededError("the answer was not whole in time");
    RM_RETURN_IF_ERROR(impl_->ReadSome(text, deadline));
    if (text.size() > max_bytes) {
      return absl::ResourceExhaustedError(
          fmt::format("the answer has more than {} bytes", max_bytes));
    }
  }
  return absl::OkStatus();
}

bool HttpConnection::IsWhole() const {
  return impl_->IsWhole();
}

bool HttpConnection::MayFollow() const {
  return impl_->MayFollow();
}

bool HttpConnection::IsQuiet() const {
  return impl_->IsQuiet();
}

void HttpConnection::Stop() {
  impl_->Stop();
}

bool HttpConnection::IsStopped() const {
  return impl_->IsStopped();
}

void HttpConnection::Close() {
  impl_->Close();
}

}  // namespace ringmaster::kube::rest
