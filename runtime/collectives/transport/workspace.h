// Memory for what an algorithm keeps until its operation is over: lists of pieces and receipts,
// results on their way. After the first operations of a round, one that is like those before takes
// nothing from the heap.
//
//   std::pmr::vector<Piece> pieces(&transport.workspace());
//
// Taking moves a mark along one block; nothing is given back but all at once. What the block has no
// room for comes from the heap, and the next Reset makes the block that much longer: so lists that
// grow should reserve, as each step of their growth counts. Not thread-safe.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_WORKSPACE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_WORKSPACE_H_

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <vector>

namespace ringmaster::collectives {

class Workspace final : public std::pmr::memory_resource {
 public:
  // All that was taken is free again; nothing of it may be used any more. Throws std::bad_alloc
  // where a longer block is not to be had, and can be used on.
  void Reset();

 private:
  // Throws std::bad_alloc.
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* /*memory*/, size_t /*bytes*/, size_t /*alignment*/) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::unique_ptr<std::byte[]> block_;
  size_t size_ = 0;                                 // of the block,
  size_t used_ = 0;                                 // and of what is taken of it
  std::vector<std::unique_ptr<std::byte[]>> more_;  // beyond the block,
  size_t more_bytes_ = 0;                           // together
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_WORKSPACE_H_
