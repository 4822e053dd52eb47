// Products of matrices that outgrow the caches, in blocks that stay in them: panels of B in the
// first cache, rows of A in the second, both packed as tiles of 6 x 16 elements read them. After
// Goto, van de Geijn: "Anatomy of high-performance matrix multiplication" (ACM TOMS, 2008) and BLIS
// (product.h). For processors without AVX-512, where the library's kernel takes what it packs into
// from the heap in each call. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_BLOCKED_PRODUCT_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_BLOCKED_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/vector/product.h"

namespace ringmaster::kernels::vector {

// As Product has it, but that the sums over k are cut into parts, as long as each other, which are
// added up in order: an element depends on its row of A and its column of B alone.
class BlockedProduct {
 public:
  explicit BlockedProduct(const Product& product) : p_(product) {}

  // Memory for Run: what each thread packs.
  size_t scratch_bytes() const;
  // `bias` may be null. Uses the process's threads, and blocks until they are done. Runs at the
  // same time want scratch of their own. Cannot fail.
  void Run(const float* x, const float* w, const float* bias, float* y, float* scratch) const;

 private:
  struct Grid;

  Grid MakeGrid() const;

  const Product p_;
};

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_BLOCKED_PRODUCT_H_
