// The operations of a Communicator: what must agree, checked here first, then between the ranks.
// Guarded, as saying what is wrong takes memory before they run.
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "runtime/collectives/accelerator.h"
#include "runtime/collectives/algorithms/direct.h"
#include "runtime/collectives/algorithms/ring.h"
#include "runtime/collectives/algorithms/tree.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/note.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/reduce.h"

namespace ringmaster::collectives {
namespace {

absl::Status Mismatch(std::string_view name, std::string_view what, size_t got, size_t want) {
  if (got == want) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}: {} {}; it must be {}", name, what, got, want));
}

// Fails where the two neither are the same memory nor lie apart.
absl::Status Overlap(std::string_view name, ConstElements in, ConstElements out) {
  const std::less<const std::byte*> before;
  const auto a = in.bytes();
  const auto b = out.bytes();
  if (a.empty() || b.empty()) return absl::OkStatus();
  const bool same = a.data() == b.data() && a.size() == b.size();
  if (same || !before(a.data(), b.data() + b.size()) || !before(b.data(), a.data() + a.size()))
    return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}: the result overlaps the input", name));
}

absl::Status SameType(std::string_view name, ConstElements in, ConstElements out) {
  if (in.type() == out.type()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}: the input is of {}, the result of {}", name,
                                                NameOf(in.type()), NameOf(out.type())));
}

// What is combined into a result of its own shape.
absl::Status CheckResult(std::string_view name, ConstElements in, ConstElements out) {
  RM_RETURN_IF_ERROR(SameType(name, in, out));
  RM_RETURN_IF_ERROR(Mismatch(name, "the length of the result is", out.count(), in.count()));
  return Overlap(name, in, out);
}

size_t Total(std::span<const size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

uint64_t HashOf(std::span<const size_t> counts, uint64_t hash = kDigestStart) {
  return Digest(counts.data(), counts.size_bytes(), hash);
}

// Ranks that took different algorithms, or joined others in two levels, would wait for one another.
uint64_t PlanOf(const Method& method) {
  const auto algorithm = static_cast<uint64_t>(method.algorithm);
  if (method.algorithm != Algorithm::kTwoLevel) return algorithm;
  const uint64_t plan[] = {algorithm, static_cast<uint64_t>(method.between),
                           method.nodes->digest()};
  return Digest(plan, sizeof(plan));
}
uint64_t DetailOf(Reduction reduction, const Method& method) {
  return PlanOf(method) << 8 | static_cast<uint64_t>(reduction);
}

// `what`, and how: "from rank 2 by ring".
std::string_view WriteHow(std::string_view what, const Method& method, Note* note) {
  if (method.accelerator != nullptr)
    return note->Write("{} by {}", what, method.accelerator->name());
  if (method.algorithm == Algorithm::kTwoLevel) {
    const char* const between =
        method.between == Algorithm::kAuto ? "a tree" : NameOf(method.between);
    return note->Write("{} by two-level over nodes {} with {} between them", what,
                       method.nodes->text(), between);
  }
  return note->Write("{} by {}", what, NameOf(method.algorithm));
}

// "sum by ring". Mostly made once, for an operation is to cost no more than its messages.
std::string_view NoteOf(Reduction reduction, const Method& method, Note* note) {
  if (method.accelerator != nullptr || method.algorithm == Algorithm::kTwoLevel)
    return WriteHow(NameOf(reduction), method, note);
  static const auto* const kNotes = [] {
    auto* notes = new std::array<std::array<std::string, kAlgorithms>, kReductions>;
    for (size_t r = 0; r < kReductions; ++r) {
      for (size_t a = 0; a < kAlgorithms; ++a)
        (*notes)[r][a] = fmt::format("{} by {}", NameOf(static_cast<Reduction>(r)),
                                     NameOf(static_cast<Algorithm>(a)));
    }
    return notes;
  }();
  return (*kNotes)[static_cast<size_t>(reduction)][static_cast<size_t>(method.algorithm)];
}

}  // namespace

Method Communicator::MethodFor(OperationKind kind, size_t bytes) const {
  if (shared_->accelerator == nullptr) return selector_.For(kind, bytes);
  Method method;
  method.accelerator = shared_->accelerator.get();
  return method;
}

Method Communicator::MethodFor(OperationKind kind, Reduction reduction, ConstElements in) const {
  const Accelerator* accelerator = shared_->accelerator.get();
  if (accelerator != nullptr && !accelerator->Combines({reduction, in.type()}))
    return selector_.For(kind, in.bytes().size());
  return MethodFor(kind, in.bytes().size());
}

absl::Status Communicator::CheckRoot(int root, std::string_view name) const {
  if (root >= 0 && root < world()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: root {} is not in a world of {}", name, root, world()));
}

absl::Status Communicator::CheckParts(std::span<const size_t> counts, size_t mine, size_t all,
                                      std::string_view name) const {
  RM_RETURN_IF_ERROR(
      Mismatch(name, "the number of parts is", counts.size(), static_cast<size_t>(world())));
  RM_RETURN_IF_ERROR(Mismatch(name, "the length of this rank's part is", mine,
                              counts[static_cast<size_t>(rank())]));
  size_t total = 0;
  for (const size_t count : counts) {
    if (__builtin_add_overflow(total, count, &total))
      return absl::InvalidArgumentError(fmt::format("{}: the parts together are too long", name));
  }
  return Mismatch(name, "the length of the parts together is", all, total);
}

absl::Status Communicator::Allreduce(Reduction reduction, ConstElements in, Elements out,
                                     std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(CheckResult(name, in, out));
    const Method method = MethodFor(OperationKind::kAllreduce, reduction, in);
    Note note;
    const Operation operation{
        OperationKind::kAllreduce,   in.type(), in.count(),
        DetailOf(reduction, method), name,      NoteOf(reduction, method, &note)};
    return Run(operation,
               [&](Transport& t) { return collectives::Allreduce(t, method, reduction, in, out); });
  });
}

absl::Status Communicator::ReduceScatter(Reduction reduction, ConstElements in,
                                         std::span<const size_t> counts, Elements out,
                                         std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(SameType(name, in, out));
    RM_RETURN_IF_ERROR(CheckParts(counts, out.count(), in.count(), name));
    const ConstElements part =
        in.Slice(Total(counts.first(static_cast<size_t>(rank()))), out.count());
    if (part.data() != out.data()) RM_RETURN_IF_ERROR(Overlap(name, in, out));
    const Method method = MethodFor(OperationKind::kReduceScatter, reduction, in);
    const auto code = static_cast<uint64_t>(reduction);
    const Operation operation{OperationKind::kReduceScatter, in.type(), in.count(),
                              HashOf(counts, code),          name,      NameOf(reduction)};
    return Run(operation, [&](Transport& t) {
      return collectives::ReduceScatter(t, method, reduction, in, counts, out);
    });
  });
}

absl::Status Communicator::Reduce(Reduction reduction, int root, ConstElements in, Elements out,
                                  std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(CheckRoot(root, name));
    if (rank() == root) {
      RM_RETURN_IF_ERROR(CheckResult(name, in, out));
    }
    const Method method = MethodFor(OperationKind::kReduce, reduction, in);
    const uint64_t detail = static_cast<uint64_t>(root) << 16 | DetailOf(reduction, method);
    Note how, note;
    const Operation operation{OperationKind::kReduce,
                              in.type(),
                              in.count(),
                              detail,
                              name,
                              note.Write("{} to rank {}", NoteOf(reduction, method, &how), root)};
    return Run(operation, [&](Transport& t) {
      return collectives::Reduce(t, method, reduction, root, in, out);
    });
  });
}

absl::Status Communicator::Broadcast(int root, Elements data, std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(CheckRoot(root, name));
    const Method method = MethodFor(OperationKind::kBroadcast, data.bytes().size());
    const uint64_t detail = Digest(&root, sizeof(root), PlanOf(method));
    Note from, note;
    const Operation operation{OperationKind::kBroadcast,
                              data.type(),
                              data.count(),
                              detail,
                              name,
                              WriteHow(from.Write("from rank {}", root), method, &note)};
    return Run(operation,
               [&](Transport& t) { return collectives::Broadcast(t, method, root, data); });
  });
}

absl::Status Communicator::Allgather(ConstElements mine, std::span<const size_t> counts,
                                     Elements out, std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(SameType(name, mine, out));
    RM_RETURN_IF_ERROR(CheckParts(counts, mine.count(), out.count(), name));
    const Elements part = out.Slice(Total(counts.first(static_cast<size_t>(rank()))), mine.count());
    if (part.data() != mine.data()) RM_RETURN_IF_ERROR(Overlap(name, mine, out));
    Note note;
    const Operation operation{OperationKind::kAllgather,
                              mine.type(),
                              out.count(),
                              HashOf(counts),
                              name,
                              note.Write("this rank's {}", mine.count())};
    return Run(operation, [&](Transport& t) {
      if (Accelerator* accelerator = shared_->accelerator.get(); accelerator != nullptr)
        return accelerator->Allgather(t, mine, counts, out);
      std::pmr::vector<size_t> bytes(counts.begin(), counts.end(), &t.workspace());
      for (size_t& size : bytes) size *= mine.element_bytes();
      return RingAllgather(t, mine.bytes(), bytes, out.bytes(), segment_bytes());
    });
  });
}

absl::Status Communicator::Gather(int root, ConstElements mine, std::span<const size_t> counts,
                                  Elements out, std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(CheckRoot(root, name));
    const size_t total = Total(counts);
    RM_RETURN_IF_ERROR(
        CheckParts(counts, mine.count(), rank() == root ? out.count() : total, name));
    if (rank() == root) {
      RM_RETURN_IF_ERROR(SameType(name, mine, out));
      const Elements part = out.Slice(Total(counts.first(static_cast<size_t>(root))), mine.count());
      if (part.data() != mine.data()) RM_RETURN_IF_ERROR(Overlap(name, mine, out));
    }
    const auto code = static_cast<uint64_t>(root);
    Note note;
    const Operation operation{OperationKind::kGather, mine.type(), total,
                              HashOf(counts, code),   name,        note.Write("to rank {}", root)};
    return Run(operation, [&](Transport& t) {
      if (Accelerator* accelerator = shared_->accelerator.get(); accelerator != nullptr)
        return collectives::Gather(*accelerator, t, root, mine, counts, out);
      return DirectGather(t, root, mine, counts, out, segment_bytes());
    });
  });
}

absl::Status Communicator::Scatter(int root, ConstElements in, std::span<const size_t> counts,
                                   Elements mine, std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(CheckRoot(root, name));
    const size_t total = Total(counts);
    RM_RETURN_IF_ERROR(CheckParts(counts, mine.count(), rank() == root ? in.count() : total, name));
    if (rank() == root) {
      RM_RETURN_IF_ERROR(SameType(name, in, mine));
      const ConstElements part =
          in.Slice(Total(counts.first(static_cast<size_t>(root))), mine.count());
      if (part.data() != mine.data()) RM_RETURN_IF_ERROR(Overlap(name, in, mine));
    }
    const auto code = static_cast<uint64_t>(root);
    Note note;
    const Operation operation{
        OperationKind::kScatter, mine.type(), total,
        HashOf(counts, code),    name,        note.Write("from rank {}", root)};
    return Run(operation, [&](Transport& t) {
      if (Accelerator* accelerator = shared_->accelerator.get(); accelerator != nullptr)
        return collectives::Scatter(*accelerator, t, root, in, counts, mine);
      return DirectScatter(t, root, in, counts, mine, segment_bytes());
    });
  });
}

absl::Status Communicator::AllToAll(ConstElements in, std::span<const size_t> send_counts,
                                    Elements out, std::span<const size_t> receive_counts,
                                    std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(SameType(name, in, out));
    const auto own = [&](std::span<const size_t> counts) {
      return counts.size() == static_cast<size_t>(world()) ? counts[static_cast<size_t>(rank())]
                                                           : 0;
    };
    RM_RETURN_IF_ERROR(CheckParts(send_counts, own(receive_counts), in.count(), name));
    RM_RETURN_IF_ERROR(CheckParts(receive_counts, own(send_counts), out.count(), name));
    RM_RETURN_IF_ERROR(Overlap(name, in, out));
    const auto lengths = [&](int peer) {
      const auto at = static_cast<size_t>(peer);
      return HashOfExchange(rank(), peer, send_counts[at], receive_counts[at]);
    };
    const AgreedWith by_peer = lengths;
    Note note;
    const Operation operation{OperationKind::kAllToAll,
                              in.type(),
                              0,
                              0,
                              name,
                              note.Write("this rank's {} for {}", in.count(), out.count()),
                              &by_peer};
    return Run(operation, [&](Transport& t) -> absl::Status {
      std::vector<std::byte> copy;
      if (in.data() == out.data()) copy.assign(in.bytes().begin(), in.bytes().end());
      const ConstElements from = copy.empty() ? in : ConstElements(in.type(), copy);
      if (Accelerator* accelerator = shared_->accelerator.get(); accelerator != nullptr)
        return collectives::AllToAll(*accelerator, t, from, send_counts, out, receive_counts);
      RM_RETURN_IF_ERROR(
          DirectAllToAll(t, from, send_counts, out, receive_counts, segment_bytes()));
      return t.Finish();  // `copy` is being sent from until then
    });
  });
}

}  // namespace ringmaster::collectives
