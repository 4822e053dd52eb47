// Products of large f32 matrices on a processor's matrix unit (AMX), whose tiles multiply numbers
// of 16 bits (bf16) and add up in f32. An f32 number is the sum of three of these, exactly, and of
// the nine products of two numbers' parts the six largest are added up; what the other three may
// come to is 2^-24 of the product, as much as rounding it to f32 may change it. After Henry, Tang
// and Heinecke: "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
// Computations", ARITH 2019. Internal to this folder.
//
// Of numbers below 2^-102 the last bits are lost, as the unit takes parts below 2^-126 for zero.
// What is infinite, or rounds to more than bf16 has, makes a result that is no number; none that is
// not finite is lost.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_PRODUCT_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/epilogue.h"
#include "runtime/kernels/vector/split_pack.h"

namespace ringmaster::kernels::vector {

// C = A B, and what an epilogue makes of it, whose channels are columns; with `relu` the positive
// part of that, where what is no number stays. A is m x k, B is k x n, C is m x n. Along one axis
// of A and of B, and along C's columns, neighbours lie side by side; C's rows are evenly apart.
// Each element is a sum over k in an order that depends on k and on the number of its groups alone.
struct SplitProduct {
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  SplitAxis a_rows, a_inner, b_inner, b_columns, c_rows, c_columns;
  // So many groups of m rows there are, or of k along the inner axis: samples of a batch, say.
  int64_t row_groups = 1, inner_groups = 1;
  bool relu = false;

  // Whether this processor has such a unit, and lets this process use it.
  static bool Runs();
  // Whether it pays: packing takes longer than it saves where an axis is short. Of a short inner
  // one most of the time goes into writing the result, for whose kind of product `shortest_inner`
  // is the least that was found to pay.
  bool Pays(int64_t shortest_inner = 128) const;

  // Memory for Run, aligned to 64 bytes: parts of A and B, as tiles take them.
  size_t scratch_bytes() const;
  // Uses the process's threads, and blocks until they are done. Runs at the same time want scratch
  // of their own. Cannot fail.
  void Run(const float* x, const float* w, const Epilogue& epilogue, float* y, void* scratch) const;

 private:
  struct Blocks;
  struct Block;

  void PackBlock(const Block& block, int64_t team, const float* x, const float* w) const;
  void PackStrip(const Block& block, const float* data, bool is_a, int64_t number, char* to) const;
  void RunBlock(const Block& block, int64_t team, const float* w, const Epilogue& epilogue,
                float* y) const;
};

// The product of two inputs of a node, to its output; with a bias, its third input.
class SplitKernel : public Primitive {
 public:
  SplitKernel(const SplitProduct& product, int left, int right, bool has_bias)
      : product_(product), left_(left), right_(right), has_bias_(has_bias) {}

  std::string name() const override { return "vector/amx"; }
  size_t scratch_bytes() const override { return product_.scratch_bytes(); }
  void Run(const Arguments& a) override {
    const Epilogue bias{.offset = has_bias_ ? a.in<float>(2) : nullptr};
    product_.Run(a.in<float>(left_), a.in<float>(right_), bias, a.out<float>(0), a.scratch);
  }

 protected:
  const SplitProduct& product() const { return product_; }

 private:
  const SplitProduct product_;
  const int left_, right_;
  const bool has_bias_;
};

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_PRODUCT_H_
