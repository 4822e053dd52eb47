// What an evaluation measured on the held-out samples, of which it saw each once. The same bits on
// every rank and at every world size (evaluator.h).
#ifndef RINGMASTER_RUNTIME_TRAIN_EVALUATION_H_
#define RINGMASTER_RUNTIME_TRAIN_EVALUATION_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace ringmaster::train {

// Samples whose sums are added one after another, and come into the tree over all as one. An
// evaluation's results depend on it in their last bits.
inline constexpr int64_t kEvaluationBlock = 64;

struct Evaluation {
  int64_t step = 0;     // whose weights were evaluated
  double loss = 0;      // mean over labels; in nats, but for MeanSquare
  double accuracy = 0;  // share of labels that were right
  // Absent where the data does not have them.
  std::optional<double> top5_accuracy;  // share of labels among the five highest scores
  std::optional<double> perplexity;     // e to the loss, of text
  std::optional<double> auroc;          // of two classes that both occur, or the labels' mean
  // Of independent labels, each one's, in their order; nothing for one that all samples agree on.
  std::vector<std::optional<double>> label_aurocs{};

  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_EVALUATION_H_
