// TLS 1.3 over one connection between two ranks that have proved themselves to one another. There
// are no certificates: both know a key for this connection (transport/handshake.h), each checks
// that the other used it, and the keys of the records come from an exchange of Diffie and Hellman
// as well, so whoever learns the round's key later cannot read what was recorded before. The
// adapter over OpenSSL's libssl.
//
//   TlsStream tls(TlsStream::Side::kDialer, fd, key);
//   while (tls.Handshake() == IoState::kWouldBlock) { poll for tls.interest() ... }
//   tls.Write(parts);  // and Read, as sendmsg and recv
//
// It does not own the descriptor, which must be non-blocking and open as long as the stream is
// used. One thread at a time; nothing blocks. Two things differ from a bare socket: Read may have
// read on, so it is called until it would block before anybody polls; and what Write has taken may
// still lie here, encrypted, until the socket takes it (has_unsent).
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TLS_STREAM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TLS_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>
#include <sys/uio.h>

#include "common/file.h"
#include "common/sha256.h"
#include "runtime/collectives/transport/tcp/socket.h"

namespace ringmaster::collectives::tcp {

class TlsStream {
 public:
  enum class Side { kDialer, kAcceptor };

  // What Write encrypts before it looks whether the socket takes it.
  static constexpr size_t kGulpBytes = 64 * 1024;
  // A key of AES-GCM is for 2^24.5 records (RFC 8446, 5.5); from here on there is the next one.
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 22;

  // `records_per_key` is for tests.
  TlsStream(Side side, int fd, const Sha256Digest& key, uint64_t records_per_key = kRecordsPerKey);
  ~TlsStream();

  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Goes on with the handshake. kComplete: it is done, and the peer knows the key. kClosed: the
  // peer left. kFailed: as Read.
  IoState Handshake();

  // What a poll of the handshake waits for.
  short interest() const;

  // As sendmsg: how many bytes were taken, all of them or less; or -1 and errno, EAGAIN where the
  // socket still has not taken what Write took before, EPROTO where TLS failed (`error`). Without
  // parts it only sends what is unsent; 0: nothing is.
  ssize_t Write(std::span<const iovec> parts);

  // As ReceiveInto. kFailed leaves errno set: EPROTO where TLS failed (`error`).
  IoState Read(std::span<std::byte> into, size_t* done);

  bool has_unsent() const { return sent_ < unsent_.size(); }
  // The peer will understand nothing that is written later.
  void DropUnsent();

  // Bytes of the connection that came since this was last asked, whether or not they are a whole
  // record.
  size_t TakeReceived();

  // Why TLS failed, in OpenSSL's words ("decryption failed or bad record mac"); empty: it has not.
  const std::string& error() const { return error_; }

 private:
  struct Engine;  // OpenSSL's state and the functions that it calls

  // False: unsent bytes are left, or lost, and errno is set.
  bool Flush();
  bool Encrypt(std::span<const std::byte> record);
  // After a call of OpenSSL that returned `result` and not success.
  IoState Trouble(int result);
  void Fail(std::string why);

  const int fd_;
  const Sha256Digest key_;
  const uint64_t records_per_key_;
  std::vector<std::byte> unsent_;  // encrypted; from `sent_` on
  size_t sent_ = 0;
  int send_error_ = 0;     // of the socket; nothing can be sent any more
  int receive_error_ = 0;  // of the last recv
  bool ended_ = false;     // the peer closed the connection
  size_t received_ = 0;
  uint64_t records_ = 0;  // with the current key
  std::string error_;
  std::unique_ptr<Engine> engine_;
};

// A connection after both handshakes.
struct Connection {
  UniqueFd fd;
  std::unique_ptr<TlsStream> tls;  // null: it is not encrypted
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TLS_STREAM_H_
