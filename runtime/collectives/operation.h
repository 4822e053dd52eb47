// What one call of a collective is: the part of it that must be the same on every rank.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_OPERATION_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_OPERATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "runtime/collectives/element.h"
#include "runtime/collectives/stats.h"

namespace ringmaster::collectives {

// What only this rank and `rank` must agree on (lengths that no third one knows), as a number.
using AgreedWith = absl::FunctionRef<uint64_t(int rank)>;

// The views must live until the operation is over.
struct Operation {
  OperationKind kind = OperationKind::kBarrier;
  ElementType type = ElementType::kU8;
  uint64_t count = 0;  // elements
  uint64_t detail =
      0;  // what else must agree: the root, the reduction, a digest of the parts' sizes
  std::string_view name;  // the tensor's, for people
  std::string_view note;  // `detail` in words, e.g. "from rank 2"; not compared
  // Asked while the operation begins; null: there is nothing of the kind. Not part of the hash.
  const AgreedWith* by_peer = nullptr;

  // The Digest of all fields but the note. Peers compare it on every frame; it finds programs that
  // diverge, it does not authenticate.
  uint64_t Hash() const;

  // `allreduce of 100 float32 "conv1/weight", sum`; at most kMaxDescriptionBytes.
  std::string Describe() const;
  // The same, at the end of `text`.
  void DescribeTo(std::string* text) const;
};

// For Operation::by_peer: what two ranks agree on, one of which sends `sent` elements and awaits
// `received` of the other. The same on both.
inline constexpr uint64_t kNoMessage = ~uint64_t{0};
uint64_t HashOfExchange(int rank, int peer, uint64_t sent, uint64_t received);

inline constexpr size_t kMaxDescriptionBytes = 300;

// 64 bits that tell `bytes` from others, continued from `hash`: FNV-1a, but of words instead of
// bytes. Not against forgery.
inline constexpr uint64_t kDigestStart = 0xcbf29ce484222325;
uint64_t Digest(const void* bytes, size_t count, uint64_t hash = kDigestStart);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_OPERATION_H_
