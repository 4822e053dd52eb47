#include "runtime/train/measures.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringmaster::train {
namespace {

// Classes of a row that come before `label` when they are ordered by score.
int64_t ClassesBefore(std::span<const float> row, int32_t label) {
  const float own = row[static_cast<size_t>(label)];
  int64_t before = 0;
  for (size_t c = 0; c < row.size(); ++c) {
    const bool tie_goes_first = row[c] == own && std::cmp_less(c, label);
    before += !(row[c] <= own) || tie_goes_first ? 1 : 0;
  }
  return before;
}

}  // namespace

int64_t CountInTop(int64_t k, std::span<const float> logits, int64_t classes,
                   std::span<const int32_t> labels) {
  const auto width = static_cast<size_t>(classes);
  int64_t count = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const std::span<const float> scores = logits.subspan(row * width, width);
    const int32_t label = labels[row];
    if (label < 0 || label >= classes || std::isnan(scores[static_cast<size_t>(label)])) continue;
    count += ClassesBefore(scores, label) < k ? 1 : 0;
  }
  return count;
}

std::optional<double> Auroc(std::span<Scored> samples) {
  for (const Scored& sample : samples) {
    if (std::isnan(sample.score)) return std::nullopt;
  }
  std::sort(samples.begin(), samples.end(),
            [](const Scored& a, const Scored& b) { return a.score < b.score; });
  uint64_t positives = 0, negatives = 0;
  uint64_t won = 0;  // pairs, counted twice so that half of one is whole
  for (size_t begin = 0; begin < samples.size();) {
    uint64_t tied_positives = 0, tied_negatives = 0;
    size_t end = begin;
    for (; end < samples.size() && samples[end].score == samples[begin].score; ++end) {
      ++(samples[end].positive ? tied_positives : tied_negatives);
    }
    won += tied_positives * (2 * negatives + tied_negatives);
    positives += tied_positives;
    negatives += tied_negatives;
    begin = end;
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return static_cast<double>(won) / (2.0 * static_cast<double>(positives * negatives));
}

Aurocs AurocsOf(std::span<const double> scored, size_t labels) {
  constexpr size_t kTogether = 2;  // a score, and whether its label holds
  std::vector<Scored> samples(scored.size() / (kTogether * labels));
  Aurocs found;
  double sum = 0;
  int measured = 0;
  for (size_t label = 0; label < labels; ++label) {
    for (size_t i = 0; i < samples.size(); ++i) {
      const size_t place = kTogether * (i * labels + label);
      samples[i] = {.score = scored[place], .positive = scored[place + 1] != 0};
    }
    found.each.push_back(Auroc(samples));
    sum += found.each.back().value_or(0);
    measured += found.each.back() ? 1 : 0;
  }
  if (measured > 0) found.mean = sum / measured;
  return found;
}

}  // namespace ringmaster::train
