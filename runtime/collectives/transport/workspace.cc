#include "runtime/collectives/transport/workspace.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace ringmaster::collectives {
namespace {

// Everything is aligned for any type, so that the order in which things are taken does not decide
// whether they fit.
constexpr size_t kAlignment = alignof(std::max_align_t);

}  // namespace

void Workspace::Reset() {
  used_ = 0;
  if (more_.empty()) return;
  const size_t wanted = size_ + more_bytes_;
  more_.clear();
  more_bytes_ = 0;
  size_ = 0;
  block_.reset();  // first, so that there are never both
  block_ = std::make_unique_for_overwrite<std::byte[]>(wanted);
  size_ = wanted;
}

void* Workspace::do_allocate(size_t bytes, size_t alignment) {
  RM_CHECK(alignment <= kAlignment, "a workspace has no memory of that alignment");
  // Nothing has a place, too: there may be no block yet, and null is no answer.
  const size_t taken = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (taken <= size_ - used_) return block_.get() + std::exchange(used_, used_ + taken);
  more_.push_back(std::make_unique_for_overwrite<std::byte[]>(taken));
  more_bytes_ += taken;
  return more_.back().get();
}

}  // namespace ringmaster::collectives
