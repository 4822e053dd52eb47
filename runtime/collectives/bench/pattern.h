// Values that the benchmark's ranks exchange, and what must come out of them.
//
// They are small integers that every type holds exactly, so that every order of combination gives
// the same, and they repeat after kPeriod elements, so that checking costs a comparison of memory.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_BENCH_PATTERN_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_BENCH_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/collectives/combine.h"
#include "runtime/collectives/element.h"

namespace ringmaster::collectives::bench {

inline constexpr size_t kPeriod = 128;

// kPeriod elements of a type.
using Pattern = std::vector<std::byte>;

// What `rank` moves; differs from rank to rank and within the period.
Pattern MovedBy(ElementType type, int rank);

// What `rank` contributes to a reduction: exact for up to 64 ranks.
Pattern Contribution(ElementType type, Reduction reduction, int rank);

// All ranks' contributions combined.
Pattern Combined(ElementType type, Reduction reduction, int ranks);

// Element i = the pattern's element number i + start.
void Fill(Elements values, const Pattern& pattern, size_t start);

// How many elements are not that.
uint64_t CountWrong(ConstElements values, const Pattern& pattern, size_t start);

}  // namespace ringmaster::collectives::bench

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_BENCH_PATTERN_H_
