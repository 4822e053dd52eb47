// A first-in-first-out queue that keeps its memory, and that of what lay in it: one that has been
// as long as it gets allocates nothing any more. (std::deque gives blocks back and takes new ones
// as it moves on.) Not thread-safe.
#ifndef RINGMASTER_COMMON_KEPT_QUEUE_H_
#define RINGMASTER_COMMON_KEPT_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ringmaster {

template <typename T>
class KeptQueue {
 public:
  bool empty() const { return first_ == end_; }
  size_t size() const { return end_ - first_; }
  T& operator[](size_t i) { return places_[first_ + i]; }
  const T& operator[](size_t i) const { return places_[first_ + i]; }
  T& front() { return places_[first_]; }
  const T& front() const { return places_[first_]; }

  // Adds what fill(T&) makes of a place, in which lies what it last held: all of it is to be set.
  // Where that throws nothing was added.
  template <typename Fill>
  void Add(const Fill& fill) {
    if (end_ == places_.size()) MakePlace();
    fill(places_[end_]);
    ++end_;
  }

  void PopFront() {
    if (++first_ == end_) Clear();
  }
  // Leaves the first `size`.
  void Shorten(size_t size) { end_ = std::min(end_, first_ + size); }
  void Clear() { first_ = end_ = 0; }

  template <typename Matches>
  void EraseIf(const Matches& matches) {
    const auto end = std::remove_if(At(first_), At(end_), matches);
    end_ = static_cast<size_t>(end - places_.begin());
  }
  template <typename Matches>
  bool Any(const Matches& matches) const {
    const auto begin = places_.begin();
    return std::any_of(begin + static_cast<std::ptrdiff_t>(first_),
                       begin + static_cast<std::ptrdiff_t>(end_), matches);
  }

 private:
  auto At(size_t place) { return places_.begin() + static_cast<std::ptrdiff_t>(place); }

  // In a queue that is never empty for long the places at the front are used again, too.
  void MakePlace() {
    if (first_ > 0 && first_ >= size()) {
      std::rotate(places_.begin(), At(first_), At(end_));
      end_ -= first_;
      first_ = 0;
    } else {
      places_.emplace_back();
    }
  }

  std::vector<T> places_;
  size_t first_ = 0, end_ = 0;  // of places_, those in the queue
};

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_KEPT_QUEUE_H_
