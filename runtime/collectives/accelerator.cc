#include "runtime/collectives/accelerator.h"

#include <cstring>

#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

void CopyOwnPart(ConstElements from, Elements to) {
  if (from.count() > 0 && from.data() != to.data())
    std::memmove(to.data(), from.data(), from.bytes().size());
}

// Every rank may have one message for each other, and one from it.
Exchange AmongAll(const Transport& transport) {
  Exchange exchange;
  exchange.among_all = true;
  exchange.most_messages = 2 * static_cast<size_t>(transport.world());
  return exchange;
}

}  // namespace

absl::Status Gather(Accelerator& accelerator, Transport& transport, int root, ConstElements mine,
                    std::span<const size_t> counts, Elements out) {
  Exchange exchange = AmongAll(transport);
  if (transport.rank() != root) {
    exchange.sends.push_back({root, mine.bytes()});
    return accelerator.Run(transport, exchange);
  }
  const auto parts = PartsOf(counts);
  for (int rank = 0; rank < transport.world(); ++rank) {
    const Piece& part = parts[static_cast<size_t>(rank)];
    const Elements place = out.Slice(part.offset, part.count);
    if (rank == root) {
      CopyOwnPart(mine, place);
    } else {
      exchange.receives.push_back({rank, place.bytes()});
    }
  }
  return accelerator.Run(transport, exchange);
}

absl::Status Scatter(Accelerator& accelerator, Transport& transport, int root, ConstElements in,
                     std::span<const size_t> counts, Elements mine) {
  Exchange exchange = AmongAll(transport);
  if (transport.rank() != root) {
    exchange.receives.push_back({root, mine.bytes()});
    return accelerator.Run(transport, exchange);
  }
  const auto parts = PartsOf(counts);
  for (int rank = 0; rank < transport.world(); ++rank) {
    const Piece& part = parts[static_cast<size_t>(rank)];
    const ConstElements place = in.Slice(part.offset, part.count);
    if (rank == root) {
      CopyOwnPart(place, mine);
    } else {
      exchange.sends.push_back({rank, place.bytes()});
    }
  }
  return accelerator.Run(transport, exchange);
}

absl::Status AllToAll(Accelerator& accelerator, Transport& transport, ConstElements in,
                      std::span<const size_t> send_counts, Elements out,
                      std::span<const size_t> receive_counts) {
  Exchange exchange = AmongAll(transport);
  const auto leaving = PartsOf(send_counts);
  const auto coming = PartsOf(receive_counts);
  for (int rank = 0; rank < transport.world(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    const ConstElements from = in.Slice(leaving[at].offset, leaving[at].count);
    const Elements to = out.Slice(coming[at].offset, coming[at].count);
    if (rank == transport.rank()) {
      CopyOwnPart(from, to);
      continue;
    }
    exchange.sends.push_back({rank, from.bytes()});
    exchange.receives.push_back({rank, to.bytes()});
  }
  return accelerator.Run(transport, exchange);
}

}  // namespace ringmaster::collectives
