#include "runtime/collectives/doubling.h"

#include <bit>
#include <cstring>
#include <deque>
#include <vector>

#include "common/status.h"

namespace ringmaster::collectives {
namespace {

using Buffer = std::vector<std::byte>;

// The exchange among `places` ranks, a power of two. The first 2 * `lent` ranks share a place in
// pairs, which the odd one takes.
struct Places {
  int places;
  int lent;

  explicit Places(int world)
      : places(static_cast<int>(std::bit_floor(static_cast<unsigned>(world)))),
        lent(world - places) {}

  bool has_pair(int rank) const { return rank < 2 * lent; }
  bool lends(int rank) const { return has_pair(rank) && rank % 2 == 0; }
  int place(int rank) const { return has_pair(rank) ? rank / 2 : rank - lent; }
  int rank(int place) const { return place < lent ? 2 * place + 1 : place + lent; }
};

}  // namespace

// Who has the lower place is on the left, so that both sides of an exchange get the same bits.
absl::Status DoublingAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                               Elements out) {
  const Places where(transport.world());
  const int rank = transport.rank();
  const size_t bytes = in.bytes().size();
  if (where.lends(rank)) {
    transport.PostSend(rank + 1, in.bytes());
    RM_RETURN_IF_ERROR(transport.Finish());  // `out` may be `in`
    RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(rank + 1, out.bytes())));
    return transport.Finish();
  }
  std::deque<Buffer> sent(1, Buffer(in.bytes().begin(), in.bytes().end()));
  Buffer theirs(bytes);
  const auto combine_with = [&](int peer, bool peer_is_left) -> absl::Status {
    RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(peer, theirs)));
    const Buffer& mine = sent.back();
    Buffer result(bytes);
    combine(result.data(), peer_is_left ? theirs.data() : mine.data(),
            peer_is_left ? mine.data() : theirs.data(), in.count());
    sent.push_back(std::move(result));
    return absl::OkStatus();
  };
  for (int step = 1; step < where.places; step *= 2)
    transport.Connect(where.rank(where.place(rank) ^ step));
  if (where.has_pair(rank)) RM_RETURN_IF_ERROR(combine_with(rank - 1, true));
  for (int step = 1; step < where.places; step *= 2) {
    const int peer = where.rank(where.place(rank) ^ step);
    transport.PostSend(peer, sent.back());
    RM_RETURN_IF_ERROR(combine_with(peer, (where.place(rank) & step) != 0));
  }
  if (where.has_pair(rank)) transport.PostSend(rank - 1, sent.back());
  if (bytes > 0) std::memcpy(out.data(), sent.back().data(), bytes);
  return transport.Finish();
}

}  // namespace ringmaster::collectives
