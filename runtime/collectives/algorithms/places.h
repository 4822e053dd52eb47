// How algorithms for a power of two of ranks serve any number: the ranks beyond one lend their
// values to a neighbour before, and get the result from it at the end. (Thakur, Rabenseifner and
// Gropp, "Optimization of collective communication operations in MPICH", 2005.)
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_PLACES_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_PLACES_H_

#include <bit>

namespace ringmaster::collectives {

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

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_PLACES_H_
