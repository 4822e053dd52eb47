// What one call of a collective is: the part of it that must be the same on every rank.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_OPERATION_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_OPERATION_H_

#include <cstdint>
#include <string>

#include "runtime/collectives/element.h"
#include "runtime/collectives/stats.h"

namespace ringmaster::collectives {

struct Operation {
  OperationKind kind = OperationKind::kBarrier;
  ElementType type = ElementType::kU8;
  uint64_t count = 0;  // elements
  uint64_t detail =
      0;             // what else must agree: the root, the reduction, a digest of the parts' sizes
  std::string name;  // the tensor's, for people
  std::string note;  // `detail` in words, e.g. "from rank 2"; not compared

  // 64 bits of FNV-1a over all fields but the note. Peers compare it on every frame; it finds
  // programs that diverge, it does not authenticate.
  uint64_t Hash() const;

  // `allreduce of 100 float32 "conv1/weight", sum`; at most kMaxDescriptionBytes.
  std::string Describe() const;
};

inline constexpr size_t kMaxDescriptionBytes = 300;

// FNV-1a over `bytes`, continued from `hash`.
inline constexpr uint64_t kFnvOffset = 0xcbf29ce484222325;
uint64_t Fnv1a(const void* bytes, size_t count, uint64_t hash = kFnvOffset);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_OPERATION_H_
