// Embedding and causal self attention.
#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

Specs InferEmbedding(const InferContext& context) {
  if (context.inputs.size() != 2) return Misfit("takes a table and indices");
  RM_RETURN_IF_ERROR(CheckRealPrefix(context, 1));
  RM_RETURN_IF_ERROR(CheckRank(context, 0, 2, "table"));
  RM_RETURN_IF_ERROR(CheckIndices(context, 1, "indices"));
  std::vector<int64_t> dims = ToInts(context.inputs[1].shape);
  dims.push_back(context.inputs[0].shape.dim(1));
  if (dims.size() > Shape::kMaxRank) return Misfit("indices have too many axes");
  return std::vector{ValueSpec{Shape(dims), context.inputs[0].dtype}};
}

void EmbeddingGradient(GradientContext& c) {
  const Shape table = c.graph().shape(c.input(0));
  c.SetGradient(0, c.graph().AddOne("embedding_grad", {{"shape", ToInts(table)}},
                                    {c.output_gradient(0), c.input(1)}, c.Name("table")));
}

Specs InferAttention(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  RM_RETURN_IF_ERROR(CheckRank(context, 0, 3, "qkv"));
  const Shape& qkv = context.inputs[0].shape;
  const int64_t heads = context.attributes.Int("heads");
  if (heads < 1 || qkv.dim(2) % (3 * heads) != 0) {
    return Misfit(fmt::format("the last axis, {}, must be 3 times a multiple of heads, {}",
                              qkv.dim(2), heads));
  }
  const DType dtype = context.inputs[0].dtype;
  return std::vector{ValueSpec{WithLast(qkv, qkv.dim(2) / 3), dtype},
                     ValueSpec{{qkv.dim(0), heads, qkv.dim(1)}, dtype}};
}

void AttentionGradient(GradientContext& c) {
  c.SetGradient(0, c.graph().AddOne("causal_attention_grad", c.attributes(),
                                    {c.input(0), c.output(0), c.output(1), c.output_gradient(0)},
                                    c.Name("qkv")));
}

}  // namespace

constinit const OpDefinition kEmbedding{"embedding", 1, InferEmbedding, EmbeddingGradient};
constinit const OpDefinition kEmbeddingGrad{"embedding_grad", 1, InferFromAttribute, nullptr};
constinit const OpDefinition kCausalAttention{"causal_attention", 2, InferAttention,
                                              AttentionGradient};
constinit const OpDefinition kCausalAttentionGrad{"causal_attention_grad", 1, InferLikeFirst,
                                                  nullptr};

ValueId Embedding(Graph& g, ValueId table, ValueId indices, std::string_view name) {
  return g.AddOne("embedding", {}, {table, indices}, name);
}

ValueId CausalAttention(Graph& g, ValueId qkv, int64_t heads, std::string_view name) {
  const ValueId inputs[] = {qkv};
  return g.Add("causal_attention", {{"heads", heads}}, inputs, 2, name)[0];
}

}  // namespace ringmaster::graph
