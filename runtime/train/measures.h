// What evaluations measure beside loss and accuracy. Pure functions; exact, so that their results
// do not depend on how the samples were spread over workers.
#ifndef RINGMASTER_RUNTIME_TRAIN_MEASURES_H_
#define RINGMASTER_RUNTIME_TRAIN_MEASURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ringmaster::train {

// How many labels are among the `k` classes with the highest scores. `logits` are the rows of
// scores one after another, of `classes` >= 1 each, one row for each label. Of classes with equal
// scores the one that comes first is the higher, as for accuracy. A row with a NaN at its label is
// wrong, as is one whose label is no class; elsewhere a NaN counts as higher.
int64_t CountInTop(int64_t k, std::span<const float> logits, int64_t classes,
                   std::span<const int32_t> labels);

// A sample's score for class 1, and whether that is its class.
struct Scored {
  double score = 0;
  bool positive = false;
};

// The area under the receiver operating characteristic: the share of pairs of a positive and a
// negative sample in which the positive one has the higher score, a tie counting half (Hanley and
// McNeil, 1982). It is a quotient of two whole numbers, rounded once. Nothing where one of the two
// kinds is missing or a score is NaN. Takes less than 2^32 samples, which it sorts.
std::optional<double> Auroc(std::span<Scored> samples);

// What an evaluation says of it.
struct Aurocs {
  std::optional<double> mean;               // of those that there are; nothing where there are none
  std::vector<std::optional<double>> each;  // by label
};

// The area of each of a sample's `labels` labels. `scored` has, sample by sample and label by
// label, the score and 1 where the label holds, 0 where not, by turns.
Aurocs AurocsOf(std::span<const double> scored, size_t labels);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_MEASURES_H_
