#include "runtime/train/plot/svg_plot.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringmaster::train::plot {
namespace {

constexpr int kLeft = 90, kRight = 60, kTop = 40, kHeight = 260, kBelow = 60;
constexpr int kPanel = kTop + kHeight + kBelow;
constexpr int kWidth = kLeft + kSvgColumns + kRight;
constexpr int kTicks = 5;

std::string TextAt(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

std::string Line(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ccc\"/>\n", x1, y1,
      x2, y2);
}

// Ticks of the values, and of the steps with their epochs.
std::string Axes(const Curve& curve, const optim::RunLength& run, int top) {
  std::string svg;
  const double bottom = top + kHeight, right = kLeft + kSvgColumns;
  for (int i = 0; i <= kTicks; ++i) {
    const double share = static_cast<double>(i) / kTicks;
    const double y = bottom - kHeight * share, x = kLeft + kSvgColumns * share;
    const double step = share * static_cast<double>(run.total_steps);
    svg += Line(kLeft, y, right, y) + Line(x, top, x, bottom);
    svg += TextAt(kLeft - 8, y + 4, "end", fmt::format("{:.4g}", curve.highest * share));
    svg += TextAt(x, bottom + 18, "middle", fmt::format("step {:.0f}", step));
    svg += TextAt(x, bottom + 34, "middle",
                  fmt::format("epoch {:.4g}", step * static_cast<double>(run.batch) /
                                                  static_cast<double>(run.samples)));
  }
  return svg;
}

std::string Panel(const Curve& curve, const optim::RunLength& run, int top, const char* colour) {
  std::string svg = TextAt(kLeft, top - 8, "start", curve.name) + Axes(curve, run, top);
  const double highest = curve.highest > 0 ? curve.highest : 1;
  const double step_width =
      static_cast<double>(kSvgColumns) / static_cast<double>(curve.columns.size());
  std::string points;
  double x = kLeft, last = curve.first;
  const auto add = [&](double value) {
    points += fmt::format("{:.0f},{:.1f} ", x, top + kHeight * (1 - value / highest));
  };
  for (const Column& column : curve.columns) {
    // The nearer end first, so that the line goes on where it was.
    const bool down = last > (column.low + column.high) / 2;
    const double from = down ? column.high : column.low, to = down ? column.low : column.high;
    add(from);
    if (to != from) add(to);
    x += step_width;
    last = to;
  }
  return svg +
         fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\n",
                     colour, points);
}

}  // namespace

std::string Svg(const Curves& curves) {
  const bool both = !curves.decay.constant();
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, both ? 2 * kPanel : kPanel);
  svg += TextAt(kLeft + kSvgColumns, kTop - 8, "end", Describe(curves.run));
  svg += Panel(curves.rate, curves.run, kTop, "#1f77b4");
  if (both) svg += Panel(curves.decay, curves.run, kPanel + kTop, "#ff7f0e");
  return svg + "</svg>\n";
}

}  // namespace ringmaster::train::plot
