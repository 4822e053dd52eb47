// How arrays are cut: into one slice per rank, and slices into pieces that fit one frame.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_PIECES_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_PIECES_H_

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <ranges>
#include <span>
#include <vector>

namespace ringmaster::collectives {

struct Piece {
  size_t offset = 0;
  size_t count = 0;
};

// The `index`-th of `parts` contiguous slices of `count` elements; sizes differ by at most one.
inline Piece SliceOf(size_t count, int parts, int index) {
  const size_t n = static_cast<size_t>(parts);
  const size_t i = static_cast<size_t>(index);
  const auto boundary = [&](size_t at) { return count / n * at + std::min(at, count % n); };
  return {boundary(i), boundary(i + 1) - boundary(i)};
}

// Parts of these lengths one after another. The list is `memory`'s.
inline std::pmr::vector<Piece> PartsOf(
    std::span<const size_t> lengths,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  std::pmr::vector<Piece> parts(memory);
  parts.reserve(lengths.size());
  size_t offset = 0;
  for (const size_t length : lengths) {
    parts.push_back({offset, length});
    offset += length;
  }
  return parts;
}

// `slice` cut into so many pieces of `largest` elements, the last of what is left. A range that
// computes them, with a size and places.
inline auto CutInto(size_t pieces, Piece slice, size_t largest) {
  return std::views::iota(size_t{0}, pieces) | std::views::transform([slice, largest](size_t i) {
           const size_t done = i * largest;
           return Piece{slice.offset + done, std::min(largest, slice.count - done)};
         });
}

// `slice` cut into pieces of at most `largest` elements; none where it is empty.
inline auto PiecesOf(Piece slice, size_t largest) {
  return CutInto((slice.count + largest - 1) / largest, slice, largest);
}

// The same for messages that must come even where they are empty.
inline auto MessagesOf(Piece slice, size_t largest) {
  return CutInto(std::max<size_t>(1, (slice.count + largest - 1) / largest), slice, largest);
}

// `rank` + `by` around the ring.
inline int RingRank(int rank, int by, int world) {
  return ((rank + by) % world + world) % world;
}

// The bytes of a piece.
template <typename T>
std::span<const std::byte> BytesOf(std::span<const T> array, Piece piece) {
  return std::as_bytes(array.subspan(piece.offset, piece.count));
}
template <typename T>
std::span<std::byte> WritableBytesOf(std::span<T> array, Piece piece) {
  return std::as_writable_bytes(array.subspan(piece.offset, piece.count));
}

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_PIECES_H_
