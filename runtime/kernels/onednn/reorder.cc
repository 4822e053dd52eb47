#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/onednn/program.h"

namespace ringmaster::kernels::onednn {

std::unique_ptr<Primitive> Reorder(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    p.Reorder(p.Input(0, Stored(node.inputs[0])), p.Output(0, Stored(node.outputs[0])));
  });
}

// A copy between layouts of the result: x's is that of its own axes.
std::unique_ptr<Primitive> Transpose(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const tensor::Shape &x = node.inputs[0].shape, &y = node.outputs[0].shape;
    dnnl::memory::dims strides;
    for (const int64_t axis : node.attributes.Ints("axes"))
      strides.push_back(x.Product(static_cast<int>(axis) + 1, x.rank()));
    const dnnl::memory::dims dims(y.dims().begin(), y.dims().end());
    const dnnl::memory::desc from(dims, dnnl::memory::data_type::f32, strides);
    p.Reorder(p.Input(0, from), p.Output(0, Plain(y)));
  });
}

}  // namespace ringmaster::kernels::onednn
