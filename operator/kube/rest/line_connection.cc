#include "operator/kube/rest/line_connection.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <pplx/threadpool.h>
#include <sys/socket.h>

#include "common/status.h"

namespace ringmaster::kube::rest {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::uint32_t kMaxHeadBytes = std::uint32_t{64} << 10;

absl::Status StreamStopped() {
  return absl::CancelledError("the stream was stopped");
}

absl::Status Broken(const error_code& error) {
  return absl::UnavailableError(error.message());
}

}  // namespace

// The connection itself. Every step waits until its deadline at most.
class LineConnection::Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(const Options& options) : options_(options), socket_(loop_) {
    parser_.header_limit(kMaxHeadBytes);
    parser_.body_limit(
        std::numeric_limits<std::uint64_t>::max());  // "none" refuses all (Boost 1.74)
    // Without it the library reads half a kilobyte at a time.
    buffer_.reserve(kReadBytes);
  }
  ~Connection() {
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
    beast::http::request<beast::http::empty_body> sent;
    sent.version(11);
    sent.method_string(request.method);
    sent.target(options_.address.path + request.path);
    sent.set(beast::http::field::host, options_.address.HostHeader());
    sent.set(beast::http::field::user_agent, options_.user_agent);
    sent.set(beast::http::field::accept, "application/json");
    if (!request.bearer_token.empty())
      sent.set(beast::http::field::authorization, "Bearer " + request.bearer_token);
    return Do(deadline, [&](auto done) {
      OnStream([&](auto& stream) {
        beast::http::async_write(stream, sent,
                                 [done](const error_code& error, std::size_t) { done(error); });
      });
    });
  }

  absl::Status ReadHead(SteadyTime deadline) {
    return Do(deadline, [&](auto done) {
      OnStream([&](auto& stream) {
        beast::http::async_read_header(
            stream, buffer_, parser_,
            [done](const error_code& error, std::size_t) { done(error); });
      });
    });
  }

  const beast::http::response<beast::http::buffer_body>& head() const { return parser_.get(); }
  bool IsWhole() const { return parser_.is_done(); }

  // Some of the body, behind `text`; nothing at its end. kDeadlineExceeded leaves the read under
  // way: the next call goes on with it.
  absl::Status ReadSome(std::string& text, SteadyTime deadline) {
    if (parser_.is_done()) return absl::OkStatus();
    if (!reading_) {
      parser_.get().body().data = chunk_.data();
      parser_.get().body().size = chunk_.size();
      parser_.get().body().more = true;
      reading_ = true;
      read_ended_.reset();
      OnStream([&](auto& stream) {
        beast::http::async_read_some(
            stream, buffer_, parser_,
            [this](const error_code& error, std::size_t) { read_ended_ = error; });
      });
    }
    RM_RETURN_IF_ERROR(RunUntil(read_ended_, deadline));
    reading_ = false;
    text.append(chunk_.data(), chunk_.size() - parser_.get().body().size);
    const error_code error = *read_ended_;
    return error && error != beast::http::error::need_buffer ? Broken(error) : absl::OkStatus();
  }

  bool IsStopped() const { return stopped_; }
  // From any thread.
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
  // What a name's look-up, which nothing can end before it ends by itself, leaves behind.
  struct LookUp {
    std::optional<error_code> ended;
    std::vector<tcp::endpoint> found;
  };

  // An address is not looked up. A name is, by the thread that cpprestsdk's calls have for it.
  absl::StatusOr<std::vector<tcp::endpoint>> Addresses(SteadyTime deadline) {
    const auto port = static_cast<unsigned short>(options_.address.port);
    error_code not_one;
    const auto address = asio::ip::make_address(options_.address.host, not_one);
    if (!not_one) return std::vector{tcp::endpoint(address, port)};
    const auto resolver =
        std::make_shared<tcp::resolver>(crossplat::threadpool::shared_instance().service());
    const auto look_up = std::make_shared<LookUp>();
    resolver->async_resolve(
        options_.address.host, std::to_string(port), tcp::resolver::address_configured,
        [resolver, look_up, waits = weak_from_this()](const error_code& error,
                                                      const tcp::resolver::results_type& results) {
          const auto connection = waits.lock();
          if (connection == nullptr) return;
          asio::post(connection->loop_, [look_up, error, results] {
            for (const auto& result : results) look_up->found.push_back(result.endpoint());
            look_up->ended = error;
          });
        });
    if (const absl::Status waited = RunUntil(look_up->ended, deadline); !waited.ok()) {
      resolver->cancel();
      return waited;
    }
    if (*look_up->ended) return Broken(*look_up->ended);
    return std::move(look_up->found);
  }

  absl::Status Encrypt(SteadyTime deadline) {
    context_.emplace(asio::ssl::context::tls_client);
    options_.tls->Apply(context_->native_handle());
    error_code ignored;
    context_->set_verify_mode(
        options_.insecure_skip_tls_verify ? asio::ssl::verify_none : asio::ssl::verify_peer,
        ignored);
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

  absl::Status RunUntil(const std::optional<error_code>& ended, SteadyTime deadline) {
    while (true) {
      if (stopped_) return StreamStopped();
      if (ended) return absl::OkStatus();
      if (loop_.poll_one() == 0 && loop_.run_one_until(deadline) == 0)
        return absl::DeadlineExceededError("no answer came in time");
    }
  }

  const Options options_;  // its own: a look-up may hold it for longer than its owner does
  asio::io_context loop_{1};
  const asio::executor_work_guard<asio::io_context::executor_type> never_out_of_work_{
      loop_.get_executor()};
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  bool connected_ = false;  // guarded by mutex_, as is opening and closing the socket from then on
  tcp::socket socket_;
  std::optional<asio::ssl::context> context_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  beast::flat_buffer buffer_{2 * kReadBytes};
  beast::http::response_parser<beast::http::buffer_body> parser_;
  std::array<char, kReadBytes> chunk_;
  bool reading_ = false;  // into chunk_
  std::optional<error_code> read_ended_;
};

LineConnection::LineConnection(Options options)
    : options_(std::move(options)), connection_(std::make_shared<Connection>(options_)) {}
LineConnection::~LineConnection() = default;

absl::StatusOr<HttpResponse> LineConnection::Open(const HttpRequest& request, SteadyTime deadline) {
  RM_RETURN_IF_ERROR(connection_->Connect(deadline));
  RM_RETURN_IF_ERROR(connection_->Send(request, deadline));
  RM_RETURN_IF_ERROR(connection_->ReadHead(deadline));
  heard_ = SteadyTime::clock::now();
  HttpResponse response{.code = static_cast<int>(connection_->head().result_int())};
  const auto retry_after = connection_->head().find(beast::http::field::retry_after);
  if (retry_after != connection_->head().end())
    response.retry_after = std::string(retry_after->value());
  if (response.code == 200) return response;
  while (!connection_->IsWhole()) {
    RM_RETURN_IF_ERROR(connection_->ReadSome(response.body, deadline));
    if (response.body.size() > options_.max_body_bytes) {
      return absl::ResourceExhaustedError(
          fmt::format("the answer has more than {} bytes", options_.max_body_bytes));
    }
  }
  return response;
}

absl::StatusOr<std::string> LineConnection::Next(SteadyTime deadline) {
  while (true) {
    if (connection_->IsStopped()) End(StreamStopped());
    auto line = TakeLine();
    if (!absl::IsDeadlineExceeded(line.status())) return line;
    // What has come while the reader was elsewhere is read all the same.
    const SteadyTime silent = heard_ + options_.idle_timeout;
    const absl::Status read = Read(std::min(deadline, silent));
    if (read.ok()) {
      heard_ = SteadyTime::clock::now();
    } else if (!absl::IsDeadlineExceeded(read)) {
      End(read);
    } else if (deadline < silent) {
      return absl::DeadlineExceededError("nothing came in time");
    } else {
      End(absl::UnavailableError("nothing was heard from the server for too long"));
    }
  }
}

// A line that has come; kDeadlineExceeded where none has yet, and otherwise why none will.
absl::StatusOr<std::string> LineConnection::TakeLine() {
  if (absl::IsCancelled(end_)) return end_;
  searched_ = std::min(text_.find('\n', searched_), text_.size());
  const bool found = searched_ < text_.size();
  if (searched_ - taken_ > options_.max_line_bytes) {
    End(absl::OutOfRangeError(
        fmt::format("a line has more than {} bytes", options_.max_line_bytes)));
    return end_;
  }
  if (!found && end_.ok()) return absl::DeadlineExceededError("nothing came in time");
  if (!found && (!whole_ || taken_ == text_.size())) return end_;
  std::string line = text_.substr(taken_, searched_ - taken_);
  taken_ = searched_ = searched_ + (found ? 1 : 0);
  // Moves the rest to the front only when that is cheaper than what was read.
  if (taken_ * 2 >= text_.size()) {
    text_.erase(0, taken_);
    taken_ = searched_ = 0;
  }
  return line;
}

absl::Status LineConnection::Read(SteadyTime deadline) {
  RM_RETURN_IF_ERROR(connection_->ReadSome(text_, deadline));
  if (!connection_->IsWhole()) return absl::OkStatus();
  whole_ = true;
  return absl::UnavailableError("the stream ended");
}

void LineConnection::End(absl::Status why) {
  end_ = std::move(why);
  connection_->Close();
}

bool LineConnection::IsExhausted() const {
  return whole_ && taken_ == text_.size();
}

void LineConnection::Stop() {
  connection_->Stop();
}

}  // namespace ringmaster::kube::rest
