// Cases of embeddings and attention.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {
namespace {

ValueId EmbeddingCase(CaseBuilder& b) {
  return Embedding(b.graph(), b.Var({7, 5}), b.Indices({3, 6}, 7));
}
ValueId AttentionOneHead(CaseBuilder& b) {
  return CausalAttention(b.graph(), b.Var({2, 5, 12}), 1);
}
ValueId AttentionHeads(CaseBuilder& b) {
  return CausalAttention(b.graph(), b.Var({2, 6, 36}), 3);
}
// Several blocks of queries, the last not whole, and heads that are no whole tiles.
ValueId AttentionLong(CaseBuilder& b) {
  return CausalAttention(b.graph(), b.Var({2, 101, 108}), 2);
}
ValueId AttentionWideHeads(CaseBuilder& b) {
  return CausalAttention(b.graph(), b.Var({1, 50, 192}), 1);
}

}  // namespace

std::vector<Case> SequenceCases() {
  return {
      {"Embedding", EmbeddingCase},
      {"AttentionOneHead", AttentionOneHead},
      {"AttentionHeads", AttentionHeads},
      {"AttentionLong", AttentionLong},
      {"AttentionWideHeads", AttentionWideHeads},
  };
}

}  // namespace ringmaster::graph
