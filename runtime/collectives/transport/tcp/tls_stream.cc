#include "runtime/collectives/transport/tcp/tls_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <string_view>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "common/check.h"

namespace ringmaster::collectives::tcp {
namespace {

constexpr size_t kRecordBytes = 16 * 1024;  // the most that a record of TLS may hold
constexpr size_t kReadAheadBytes = 64 * 1024;
constexpr char kCipher[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherId[] = {0x13, 0x01};
// The key itself says which connection it is for.
constexpr std::string_view kIdentity = "ringmaster";

// What is to be written, in records.
class Plaintext {
 public:
  explicit Plaintext(std::span<const iovec> parts) : parts_(parts) {}

  // The next record, empty at the end: in place where it is long, else several parts together.
  std::span<const std::byte> Next() {
    Skip();
    if (parts_.empty()) return {};
    if (rest().size() >= kRecordBytes || parts_.size() == 1) return Take(kRecordBytes);
    size_t filled = 0;
    for (; filled < kRecordBytes && !parts_.empty(); Skip()) {
      const std::span<const std::byte> piece = Take(kRecordBytes - filled);
      std::memcpy(together_.data() + filled, piece.data(), piece.size());
      filled += piece.size();
    }
    return std::span(together_).first(filled);
  }

 private:
  std::span<const std::byte> rest() const {
    const iovec& part = parts_.front();
    return std::span(static_cast<const std::byte*>(part.iov_base), part.iov_len).subspan(offset_);
  }
  void Skip() {
    while (!parts_.empty() && offset_ == parts_.front().iov_len) {
      parts_ = parts_.subspan(1);
      offset_ = 0;
    }
  }
  std::span<const std::byte> Take(size_t most) {
    const std::span<const std::byte> piece = rest().first(std::min(most, rest().size()));
    offset_ += piece.size();
    return piece;
  }

  std::span<const iovec> parts_;
  size_t offset_ = 0;
  std::array<std::byte, kRecordBytes> together_;
};

}  // namespace

struct TlsStream::Engine {
  explicit Engine(Side side) : ssl(SSL_new(Context(side))) {
    RM_CHECK(ssl != nullptr, "OpenSSL has no memory for a connection");
  }
  ~Engine() { SSL_free(ssl); }

  SSL* const ssl;

  static SSL_CTX* Context(Side side);
  static SSL_CTX* MakeContext(const SSL_METHOD* method);
  static BIO* MakeBio(TlsStream* stream);

  // Both sides' session, which stands for the key.
  static SSL_SESSION* Session(SSL* ssl);
  static int OfferKey(SSL* ssl, const EVP_MD* hash, const unsigned char** identity, size_t* length,
                      SSL_SESSION** session);
  static int FindKey(SSL* ssl, const unsigned char* identity, size_t length, SSL_SESSION** session);

  // OpenSSL's own way to a socket writes without MSG_NOSIGNAL, record by record.
  static int Put(BIO* bio, const char* bytes, int count) noexcept;
  static int Get(BIO* bio, char* bytes, int count);
  static long Control(BIO* bio, int command, long, void*);
};

SSL_SESSION* TlsStream::Engine::Session(SSL* ssl) {
  const auto* stream = static_cast<const TlsStream*>(SSL_get_app_data(ssl));
  SSL_SESSION* session = SSL_SESSION_new();
  RM_CHECK(
      session != nullptr &&
          SSL_SESSION_set1_master_key(session, stream->key_.data(), stream->key_.size()) == 1 &&
          SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kCipherId)) == 1 &&
          SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1,
      "OpenSSL takes no pre-shared key");
  return session;
}

int TlsStream::Engine::OfferKey(SSL* ssl, const EVP_MD*, const unsigned char** identity,
                                size_t* length, SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *length = kIdentity.size();
  *session = Session(ssl);  // OpenSSL's from here on
  return 1;
}

int TlsStream::Engine::FindKey(SSL* ssl, const unsigned char* identity, size_t length,
                               SSL_SESSION** session) {
  const std::string_view wanted(reinterpret_cast<const char*>(identity), length);
  *session = wanted == kIdentity ? Session(ssl) : nullptr;
  return 1;
}

// There is room, as nothing may be thrown through OpenSSL.
int TlsStream::Engine::Put(BIO* bio, const char* bytes, int count) noexcept {
  auto* stream = static_cast<TlsStream*>(BIO_get_data(bio));
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  stream->unsent_.insert(stream->unsent_.end(), first, first + count);
  return count;
}

int TlsStream::Engine::Get(BIO* bio, char* bytes, int count) {
  auto* stream = static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t got;
  do {
    got = recv(stream->fd_, bytes, static_cast<size_t>(count), 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    stream->received_ += static_cast<size_t>(got);
  } else if (got == 0) {
    stream->ended_ = true;
  } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
    BIO_set_retry_read(bio);
  } else {
    stream->receive_error_ = errno;
  }
  return static_cast<int>(got);
}

long TlsStream::Engine::Control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* TlsStream::Engine::MakeBio(TlsStream* stream) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ringmaster connection");
    RM_CHECK(made != nullptr && BIO_meth_set_write(made, Put) == 1 &&
                 BIO_meth_set_read(made, Get) == 1 && BIO_meth_set_ctrl(made, Control) == 1,
             "OpenSSL takes no connection of another kind");
    return made;
  }();
  BIO* bio = BIO_new(method);
  RM_CHECK(bio != nullptr, "OpenSSL has no memory for a connection");
  BIO_set_data(bio, stream);
  BIO_set_init(bio, 1);
  return bio;
}

// One cipher, so one hash, which the key is for. An acceptor has no certificate to show, and a
// dialer would believe none: without the key no handshake ends well.
SSL_CTX* TlsStream::Engine::MakeContext(const SSL_METHOD* method) {
  SSL_CTX* context = SSL_CTX_new(method);
  RM_CHECK(context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
               SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
               SSL_CTX_set_ciphersuites(context, kCipher) == 1 &&
               SSL_CTX_set_num_tickets(context, 0) == 1,
           "OpenSSL has no TLS 1.3");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT | SSL_OP_ALLOW_NO_DHE_KEX);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAheadBytes);
  SSL_CTX_set_psk_use_session_callback(context, OfferKey);
  SSL_CTX_set_psk_find_session_callback(context, FindKey);
  return context;
}

// For the life of the process, as a connection may be any thread's.
SSL_CTX* TlsStream::Engine::Context(Side side) {
  if (side == Side::kDialer) {
    static SSL_CTX* const dialers = [] {
      SSL_CTX* context = MakeContext(TLS_client_method());
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
      return context;
    }();
    return dialers;
  }
  static SSL_CTX* const acceptors = MakeContext(TLS_server_method());
  return acceptors;
}

TlsStream::TlsStream(Side side, int fd, const Sha256Digest& key, uint64_t records_per_key)
    : fd_(fd),
      key_(key),
      records_per_key_(records_per_key),
      engine_(std::make_unique<Engine>(side)) {
  unsent_.reserve(kGulpBytes + 2 * kRecordBytes);  // one record too far, its header, an alert
  SSL_set_app_data(engine_->ssl, this);
  BIO* bio = Engine::MakeBio(this);
  SSL_set_bio(engine_->ssl, bio, bio);  // owns it
  if (side == Side::kDialer) {
    SSL_set_connect_state(engine_->ssl);
  } else {
    SSL_set_accept_state(engine_->ssl);
  }
}

TlsStream::~TlsStream() = default;

IoState TlsStream::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(engine_->ssl);
  if (result != 1) {
    const IoState state = Trouble(result);
    if (state != IoState::kWouldBlock || Flush() || errno == EAGAIN) return state;
    return IoState::kFailed;
  }
  if (SSL_session_reused(engine_->ssl) != 1) {
    Fail("the peer did not use the connection's key");
    return IoState::kFailed;
  }
  if (Flush()) return IoState::kComplete;
  return errno == EAGAIN ? IoState::kWouldBlock : IoState::kFailed;
}

short TlsStream::interest() const {
  return static_cast<short>(POLLIN | (has_unsent() ? POLLOUT : 0));
}

ssize_t TlsStream::Write(std::span<const iovec> parts) {
  if (!Flush()) return -1;
  Plaintext plaintext(parts);
  size_t taken = 0;
  while (unsent_.size() < kGulpBytes) {
    const std::span<const std::byte> record = plaintext.Next();
    if (record.empty()) break;
    if (!Encrypt(record)) return -1;
    taken += record.size();
  }
  if (!Flush() && errno != EAGAIN) return -1;
  return static_cast<ssize_t>(taken);
}

bool TlsStream::Encrypt(std::span<const std::byte> record) {
  ERR_clear_error();
  if (records_++ == records_per_key_) {
    records_ = 1;
    SSL_key_update(engine_->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
  }
  size_t written = 0;
  const int result = SSL_write_ex(engine_->ssl, record.data(), record.size(), &written);
  if (result == 1) return true;
  if (Trouble(result) != IoState::kFailed) errno = EPIPE;
  return false;
}

bool TlsStream::Flush() {
  while (send_error_ == 0 && has_unsent()) {
    const ssize_t sent = send(fd_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL);
    if (sent >= 0) {
      sent_ += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      errno = EAGAIN;
      return false;
    } else if (errno != EINTR) {
      send_error_ = errno;
    }
  }
  DropUnsent();
  errno = send_error_;
  return send_error_ == 0;
}

void TlsStream::DropUnsent() {
  unsent_.clear();
  sent_ = 0;
}

IoState TlsStream::Read(std::span<std::byte> into, size_t* done) {
  ERR_clear_error();
  while (*done < into.size()) {
    size_t got = 0;
    const int result = SSL_read_ex(engine_->ssl, into.data() + *done, into.size() - *done, &got);
    if (result != 1) return Trouble(result);
    *done += got;
  }
  return IoState::kComplete;
}

IoState TlsStream::Trouble(int result) {
  const int kind = SSL_get_error(engine_->ssl, result);
  if (kind == SSL_ERROR_WANT_READ) return IoState::kWouldBlock;
  if (kind == SSL_ERROR_ZERO_RETURN || ended_) return IoState::kClosed;
  if (receive_error_ != 0) {
    errno = receive_error_;
    return IoState::kFailed;
  }
  const char* reason = ERR_reason_error_string(ERR_get_error());
  Fail(reason != nullptr ? reason : "unknown error");
  return IoState::kFailed;
}

// OpenSSL may have made an alert of it, from which the peer learns that this was no accident of the
// network's.
void TlsStream::Fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
  Flush();
  DropUnsent();
  errno = EPROTO;
}

size_t TlsStream::TakeReceived() {
  return std::exchange(received_, 0);
}

}  // namespace ringmaster::collectives::tcp
