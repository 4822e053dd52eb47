// The schedule as lines of text, for a terminal.
#ifndef RINGMASTER_RUNTIME_TRAIN_PLOT_TEXT_PLOT_H_
#define RINGMASTER_RUNTIME_TRAIN_PLOT_TEXT_PLOT_H_

#include <string>

#include "runtime/train/plot/curve.h"

namespace ringmaster::train::plot {

// The learning rate, and the weight decay where it changes, over the steps, from zero up; each with
// its first, highest and last value. A constant decay is one line.
std::string Text(const Curves& curves);

}  // namespace ringmaster::train::plot

#endif  // RINGMASTER_RUNTIME_TRAIN_PLOT_TEXT_PLOT_H_
