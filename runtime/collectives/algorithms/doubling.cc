#include "runtime/collectives/algorithms/doubling.h"

#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/algorithms/places.h"
#include "runtime/collectives/algorithms/result_place.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {
namespace {

// Calls post(offset, bytes) for each message of an array, at least one.
template <typename Post>
void ForMessages(size_t bytes, size_t largest, const Post& post) {
  size_t at = 0;
  do {
    const size_t size = std::min(largest, bytes - at);
    post(at, size);
    at += size;
  } while (at < bytes);
}

// The values of a rank from step to step. A result goes to `out`, unless that is still being sent:
// then it needs a place of its own, as what is sent must stay until the end.
class Results {
 public:
  Results(Transport& transport, ConstElements in, Elements out, size_t largest)
      : values_(in.bytes()),
        out_(out.bytes()),
        largest_(largest),
        places_(&transport.workspace()) {}

  std::span<const std::byte> values() const { return values_; }

  absl::Status SendTo(Transport& transport, int peer) {
    bool copied = true;
    ForMessages(values_.size(), largest_, [&](size_t at, size_t size) {
      copied = transport.PostSend(peer, values_.subspan(at, size)) && copied;
    });
    if (copied || values_.data() != out_.data()) return absl::OkStatus();
    RM_ASSIGN_OR_RETURN(copied, transport.TrySends());
    out_is_sent_ = !copied;
    return absl::OkStatus();
  }

  // Who has the lower place is on the left, so that both sides of an exchange get the same bits.
  absl::Status CombineWith(Transport& transport, int peer, bool peer_is_left,
                           const Combiner& combine) {
    const std::span<std::byte> into = out_is_sent_ ? OwnPlace(transport) : out_;
    Receipt last;
    ForMessages(values_.size(), largest_, [&](size_t at, size_t size) {
      last = transport.PostCombine(
          peer, {combine, values_.subspan(at, size), into.subspan(at, size), peer_is_left});
    });
    values_ = into;
    return transport.Wait(last);
  }

  absl::Status Deliver(Transport& transport) {
    if (values_.data() == out_.data()) return absl::OkStatus();
    RM_RETURN_IF_ERROR(transport.Finish());
    if (!out_.empty()) std::memcpy(out_.data(), values_.data(), out_.size());
    return absl::OkStatus();
  }

 private:
  std::span<std::byte> OwnPlace(Transport& transport) {
    places_.emplace_back(transport, out_.size());
    return places_.back().bytes();
  }

  std::span<const std::byte> values_;
  const std::span<std::byte> out_;
  const size_t largest_;  // message
  bool out_is_sent_ = false;
  std::pmr::vector<ResultPlace> places_;
};

// Between two ranks, in one message: without what several steps and messages need, which is a tenth
// of the time of a few numbers in shared memory.
absl::Status ExchangeWithOther(Transport& transport, const Combiner& combine, ConstElements in,
                               Elements out) {
  const Phase phase("swap");
  const int peer = 1 - transport.rank();
  bool copied = transport.PostSend(peer, in.bytes());
  const bool in_place = in.data() == out.data();
  if (in_place && !copied) {
    RM_ASSIGN_OR_RETURN(copied, transport.TrySends());
  }
  const bool out_is_sent = in_place && !copied;
  ResultPlace place(transport, out_is_sent ? out.bytes().size() : 0);
  const std::span<std::byte> into = out_is_sent ? place.bytes() : out.bytes();
  RM_RETURN_IF_ERROR(
      transport.Wait(transport.PostCombine(peer, {combine, in.bytes(), into, peer == 0})));
  if (!out_is_sent) return absl::OkStatus();
  RM_RETURN_IF_ERROR(transport.Finish());
  if (!into.empty()) std::memcpy(out.data(), into.data(), into.size());
  return absl::OkStatus();
}

}  // namespace

absl::Status DoublingAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                               Elements out, size_t largest_message) {
  if (transport.world() == 2 &&
      in.bytes().size() <= std::min(largest_message, ResultPlace::kKeptBytes))
    return ExchangeWithOther(transport, combine, in, out);
  const size_t largest = PieceElements(in.element_bytes(), largest_message) * in.element_bytes();
  const Places where(transport.world());
  const int rank = transport.rank();
  if (where.lends(rank)) {
    const Phase phase("lend");
    // The result contains what was lent, so that may be written over by then.
    Receipt last;
    ForMessages(in.bytes().size(), largest, [&](size_t at, size_t size) {
      transport.PostSend(rank + 1, in.bytes().subspan(at, size));
    });
    ForMessages(out.bytes().size(), largest, [&](size_t at, size_t size) {
      last = transport.PostReceive(rank + 1, out.bytes().subspan(at, size));
    });
    return transport.Wait(last);
  }
  Results results(transport, in, out, largest);
  for (int step = 1; step < where.places; step *= 2)
    transport.Connect(where.rank(where.place(rank) ^ step));
  if (where.has_pair(rank)) {
    const Phase phase("take in");
    RM_RETURN_IF_ERROR(results.CombineWith(transport, rank - 1, /*peer_is_left=*/true, combine));
  }
  for (int step = 1; step < where.places; step *= 2) {
    const Phase phase("swap");
    const int peer = where.rank(where.place(rank) ^ step);
    RM_RETURN_IF_ERROR(results.SendTo(transport, peer));
    RM_RETURN_IF_ERROR(
        results.CombineWith(transport, peer, (where.place(rank) & step) != 0, combine));
  }
  if (where.has_pair(rank)) RM_RETURN_IF_ERROR(results.SendTo(transport, rank - 1));
  return results.Deliver(transport);
}

}  // namespace ringmaster::collectives
