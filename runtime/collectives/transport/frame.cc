#include "runtime/collectives/transport/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "common/status.h"
#include "runtime/collectives/transport/wire.h"

namespace ringmaster::collectives {
namespace {

constexpr uint32_t kFrameMagic = 0x31464d52;  // "RMF1"

}  // namespace

FrameHeaderBytes EncodeFrameHeader(const FrameHeader& header) {
  FrameHeaderBytes bytes{};
  WireWriter writer(bytes);
  writer.Put(kFrameMagic);
  writer.Put(static_cast<uint32_t>(header.type));
  writer.Put(header.round);
  writer.Put(header.sequence);
  writer.Put(header.tag);
  writer.Put(header.length);
  return bytes;
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(const FrameHeaderBytes& bytes) {
  WireReader reader(bytes);
  if (reader.Get<uint32_t>() != kFrameMagic)
    return absl::DataLossError("what it sent is not a frame");
  const uint32_t type = reader.Get<uint32_t>();
  if (type < static_cast<uint32_t>(FrameType::kOperation) ||
      type > static_cast<uint32_t>(FrameType::kCircle)) {
    return absl::DataLossError("it sent a frame of unknown type");
  }
  FrameHeader header;
  header.type = static_cast<FrameType>(type);
  header.round = reader.Get<uint64_t>();
  header.sequence = reader.Get<uint64_t>();
  header.tag = reader.Get<uint64_t>();
  header.length = reader.Get<uint64_t>();
  const uint64_t limit = header.type == FrameType::kData ? kMaxDataBytes : kMaxControlBytes;
  if (header.length > limit)
    return absl::DataLossError("it sent a frame longer than its type allows");
  return header;
}

uint64_t AbortTag(const Failure& failure) {
  return static_cast<uint64_t>(failure.status.code()) | static_cast<uint64_t>(failure.suspect + 1)
                                                            << 32;
}

std::vector<std::byte> AbortFrame(uint64_t round, const Failure& failure) {
  const std::string text = Message(failure.status).substr(0, kMaxControlBytes);
  const FrameHeaderBytes header = EncodeFrameHeader(
      {.type = FrameType::kAbort, .round = round, .tag = AbortTag(failure), .length = text.size()});
  std::vector<std::byte> frame(header.begin(), header.end());
  for (const char c : text) frame.push_back(static_cast<std::byte>(c));
  return frame;
}

Failure AbortedBy(uint64_t tag, const std::string& text) {
  constexpr uint32_t kLastCode = static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
  const uint32_t code = static_cast<uint32_t>(tag);
  const bool known = code != 0 && code <= kLastCode;
  const auto status_code = known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
  // One more than the suspect; whoever says more than an int holds, names nobody.
  const uint64_t suspect = std::min<uint64_t>(tag >> 32, std::numeric_limits<int>::max());
  return {absl::Status(status_code, text), static_cast<int>(suspect) - 1};
}

}  // namespace ringmaster::collectives
