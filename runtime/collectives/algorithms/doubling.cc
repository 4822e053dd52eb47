#include "runtime/collectives/algorithms/doubling.h"

#include <cstring>

#include "absl/container/fixed_array.h"
#include "common/status.h"
#include "runtime/collectives/algorithms/places.h"

namespace ringmaster::collectives {
namespace {

// Up to here a call allocates nothing.
constexpr size_t kOnStack = 1024;

}  // namespace

// Who has the lower place is on the left, so that both sides of an exchange get the same bits. What
// is sent must stay until the end, so each step's result has a place of its own; the last is `out`.
absl::Status DoublingAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                               Elements out) {
  const Places where(transport.world());
  const int rank = transport.rank();
  const size_t bytes = in.bytes().size();
  const int exchanges = std::countr_zero(static_cast<unsigned>(where.places));
  const int results = exchanges + (where.has_pair(rank) ? 1 : 0);
  // `in` comes first, as `out` may be the same memory.
  absl::FixedArray<std::byte, kOnStack> memory(static_cast<size_t>(results) * bytes);
  const auto place = [&](int result) {
    return result == results
               ? out.bytes()
               : std::span(memory).subspan(static_cast<size_t>(result) * bytes, bytes);
  };
  if (bytes > 0) std::memcpy(place(0).data(), in.data(), bytes);
  if (where.lends(rank)) {
    transport.PostSend(rank + 1, place(0));
    RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(rank + 1, out.bytes())));
    return transport.Finish();
  }
  int done = 0;
  const auto combine_with = [&](int peer, bool peer_is_left) {
    const Combining step{combine, place(done), place(done + 1), peer_is_left};
    ++done;
    return transport.Wait(transport.PostCombine(peer, step));
  };
  for (int step = 1; step < where.places; step *= 2)
    transport.Connect(where.rank(where.place(rank) ^ step));
  if (where.has_pair(rank)) RM_RETURN_IF_ERROR(combine_with(rank - 1, true));
  for (int step = 1; step < where.places; step *= 2) {
    const int peer = where.rank(where.place(rank) ^ step);
    transport.PostSend(peer, place(done));
    RM_RETURN_IF_ERROR(combine_with(peer, (where.place(rank) & step) != 0));
  }
  if (where.has_pair(rank)) transport.PostSend(rank - 1, out.bytes());
  return transport.Finish();
}

}  // namespace ringmaster::collectives
