// The schedule as a picture.
#ifndef RINGMASTER_RUNTIME_TRAIN_PLOT_SVG_PLOT_H_
#define RINGMASTER_RUNTIME_TRAIN_PLOT_SVG_PLOT_H_

#include <string>

#include "runtime/train/plot/curve.h"

namespace ringmaster::train::plot {

// Columns that a picture has room for.
inline constexpr int kSvgColumns = 800;

// An SVG file: the learning rate and, beneath it where it changes, the weight decay, over the steps
// and epochs.
std::string Svg(const Curves& curves);

}  // namespace ringmaster::train::plot

#endif  // RINGMASTER_RUNTIME_TRAIN_PLOT_SVG_PLOT_H_
