#include "runtime/train/plot/text_plot.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace ringmaster::train::plot {
namespace {

constexpr int kRows = 16;
constexpr int kLabelWidth = 10;

int RowOf(double value, double highest) {
  return highest > 0 ? static_cast<int>(std::lround(value / highest * (kRows - 1))) : 0;
}

std::string Drawing(const Curve& curve) {
  std::string text;
  for (int row = kRows - 1; row >= 0; --row) {
    const bool labelled = row == 0 || row == kRows - 1;
    std::string line =
        fmt::format("{:>{}} |", labelled ? fmt::format("{:.4g}", row == 0 ? 0 : curve.highest) : "",
                    kLabelWidth);
    for (const Column& column : curve.columns) {
      const bool on =
          row >= RowOf(column.low, curve.highest) && row <= RowOf(column.high, curve.highest);
      line += on ? '*' : ' ';
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string Axis(const Curves& curves) {
  const size_t width = curves.rate.columns.size();
  const std::string end = fmt::format("step {}", curves.run.total_steps);
  return fmt::format("{:>{}} +{}\n{:>{}}  0{:>{}}\n", "", kLabelWidth, std::string(width, '-'), "",
                     kLabelWidth, end, width - 1);
}

std::string Summary(const Curve& curve) {
  return fmt::format("{}: first {:.6g}, highest {:.6g} at step {}, last {:.6g}\n", curve.name,
                     curve.first, curve.highest, curve.highest_step, curve.last);
}

}  // namespace

std::string Text(const Curves& curves) {
  std::string text =
      Describe(curves.run) + "\n\n" + Drawing(curves.rate) + Axis(curves) + Summary(curves.rate);
  if (curves.decay.constant())
    return text + fmt::format("weight decay: {:.6g} throughout\n", curves.decay.first);
  return text + '\n' + Drawing(curves.decay) + Axis(curves) + Summary(curves.decay);
}

}  // namespace ringmaster::train::plot
