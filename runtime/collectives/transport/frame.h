// The frames between two ranks after the handshake. A frame is a header of 40 bytes, little-endian,
// and `length` bytes of payload:
//
//   offset  size
//    0      4     magic "RMF1"
//    4      1     type
//    5      3     zero
//    8      8     round
//   16      8     sequence: the operation's number between these two ranks (0 outside any)
//   24      8     tag: hash of the operation (type, element type, count, name); kAbort: see below
//   32      8     length
//
//   kOperation  comes before the first data of an operation; its payload is the description as
//               text, so that a peer whose program diverged can be told what this rank was doing
//   kData       one message
//   kAlive      no payload: "I wait inside an operation"; what a hung peer does not send. tag: for
//               how many milliseconds the sender knows of no data that moved
//   kAbort      the sender failed; payload: the cause as text; tag: its status code, and the
//               suspected rank + 1, shifted left by 32
//   kGoodbye    the sender leaves in good order; nothing follows
//   kCircle     "do you wait for me?", to be passed on by who does; tag: the rank that asked first,
//               sequence: the number of its question, payload: who waits for whom since
//
// Which path data takes is settled before the first kData, by the rank that dialed and the one that
// accepted:
//
//   kOffer      the dialer's first frame; payload: its machine's id, or nothing where it wants TCP
//   kSegment    the acceptor's answer on the same machine; tag: bytes of a ring, payload: the name
//               of the shared memory
//   kAccept     the dialer has mapped it: data goes through it from here on, both ways
//   kDecline    instead of kSegment or kAccept: data goes over TCP; payload: why
//   kBell       there is news in the shared memory; for a peer that sleeps
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_FRAME_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

enum class FrameType : uint8_t {
  kOperation = 1,
  kData = 2,
  kAlive = 3,
  kAbort = 4,
  kGoodbye = 5,
  kOffer = 6,
  kSegment = 7,
  kAccept = 8,
  kDecline = 9,
  kBell = 10,
  kCircle = 11
};

struct FrameHeader {
  FrameType type = FrameType::kData;
  uint64_t round = 0;
  uint64_t sequence = 0;
  uint64_t tag = 0;
  uint64_t length = 0;
};

inline constexpr size_t kFrameHeaderBytes = 40;
inline constexpr size_t kMaxControlBytes = 2048;  // of every type but kData
inline constexpr uint64_t kMaxDataBytes = uint64_t{1} << 30;

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeaderBytes EncodeFrameHeader(const FrameHeader& header);

// kDataLoss: not a frame, an unknown type, or longer than its type allows.
absl::StatusOr<FrameHeader> DecodeFrameHeader(const FrameHeaderBytes& bytes);

// The tag and the payload of kAbort.
uint64_t AbortTag(const Failure& failure);
// The whole frame.
std::vector<std::byte> AbortFrame(uint64_t round, const Failure& failure);
Failure AbortedBy(uint64_t tag, const std::string& text);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_FRAME_H_
