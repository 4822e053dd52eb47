#include "runtime/kernels/onednn/eltwise.h"
#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/onednn/program.h"

namespace ringmaster::kernels::onednn {
namespace {

using dnnl::memory;

int64_t Rows(const tensor::Shape& shape) {
  return shape.Product(0, shape.rank() - 1);
}

// A rows x columns matrix whose memory is row-major, or that of its transpose.
memory::desc Matrix(int64_t rows, int64_t columns, bool transposed) {
  const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{columns, 1};
  return {{rows, columns}, memory::data_type::f32, strides};
}

// All axes but the last as rows; seen as its transpose when asked.
memory::desc Operand(const tensor::Shape& shape, bool transposed) {
  const int64_t rows = Rows(shape), columns = shape.dim(-1);
  return transposed ? Matrix(columns, rows, true) : Matrix(rows, columns, false);
}

// The product, plus the bias where there is one. Gives the buffer of the result, that output of the
// node.
int AddLinear(Program& p, const NodeSpec& node, int output) {
  const auto x = Operand(node.inputs[0].shape, false), w = Operand(node.inputs[1].shape, true);
  const auto y = Matrix(x.dims()[0], w.dims()[1], false);
  const bool has_bias = node.inputs.size() == 3;
  const auto bias = Matrix(1, w.dims()[1], false);
  const auto desc = has_bias ? dnnl::matmul::desc(x, w, bias, y) : dnnl::matmul::desc(x, w, y);
  const dnnl::matmul::primitive_desc pd(desc, UserScratchpad(), CpuEngine());
  const int src = p.Input(0, x), weights = p.Input(1, w), dst = p.Output(output, y);
  if (has_bias) {
    p.Compute<dnnl::matmul>(pd, {{DNNL_ARG_SRC, src},
                                 {DNNL_ARG_WEIGHTS, weights},
                                 {DNNL_ARG_BIAS, p.Input(2, bias)},
                                 {DNNL_ARG_DST, dst}});
  } else {
    p.Compute<dnnl::matmul>(
        pd, {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}});
  }
  return dst;
}

}  // namespace

std::unique_ptr<Primitive> MatMul(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const auto a = Operand(node.inputs[0].shape, node.attributes.Int("transpose_a") != 0);
    const auto b = Operand(node.inputs[1].shape, node.attributes.Int("transpose_b") != 0);
    const auto c = Matrix(a.dims()[0], b.dims()[1], false);
    const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(a, b, c), UserScratchpad(),
                                          CpuEngine());
    const int src = p.Input(0, a), weights = p.Input(1, b), dst = p.Output(0, c);
    p.Compute<dnnl::matmul>(
        pd, {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}});
  });
}

std::unique_ptr<Primitive> BatchMatMul(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    // All matrices of an operand, one after another in memory.
    const auto matrices = [](const tensor::Shape& shape, bool transposed) {
      const int64_t rows = shape.dim(-2), columns = shape.dim(-1);
      const memory::dims dims = {shape.Product(0, shape.rank() - 2), transposed ? columns : rows,
                                 transposed ? rows : columns};
      const memory::dims strides = {rows * columns, transposed ? 1 : columns,
                                    transposed ? columns : 1};
      return memory::desc(dims, memory::data_type::f32, strides);
    };
    const auto a = matrices(node.inputs[0].shape, node.attributes.Int("transpose_a") != 0);
    const auto b = matrices(node.inputs[1].shape, node.attributes.Int("transpose_b") != 0);
    const auto c = matrices(node.outputs[0].shape, false);
    const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(a, b, c), UserScratchpad(),
                                          CpuEngine());
    const int src = p.Input(0, a), weights = p.Input(1, b), dst = p.Output(0, c);
    p.Compute<dnnl::matmul>(
        pd, {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}});
  });
}

std::unique_ptr<Primitive> Linear(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const int dst = AddLinear(p, node, 0);
    AddActivation(p, ActivationIn(node.attributes), dst, dst,
                  Operand(node.outputs[0].shape, false));
  });
}

std::unique_ptr<Primitive> LinearActivation(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const auto y = Operand(node.outputs[0].shape, false);
    const int src = AddLinear(p, node, 1);
    AddActivation(p, ActivationIn(node.attributes), src, p.Output(0, y), y);
  });
}

}  // namespace ringmaster::kernels::onednn
