// Layers: what a network is written with. Each declares its parameters under its own name, adds its
// nodes to the builder's graph, and returns the result; the first mistake sticks in the graph's
// status and names the layer.
//
// Initial weights of a list of layers follow the activation that comes next:
//   He, Zhang, Ren, Sun: "Delving deep into rectifiers", ICCV 2015, eq. 10: variance 2 / fan_in
//   Glorot, Bengio: "Understanding the difficulty of training deep feedforward neural networks",
//   AISTATS 2010, eq. 16: variance 2 / (fan_in + fan_out)
// Both as uniform draws, bound sqrt(3 * variance). A network of the zoo says itself how they are
// drawn.
#ifndef RINGMASTER_RUNTIME_NN_LAYERS_H_
#define RINGMASTER_RUNTIME_NN_LAYERS_H_

#include <cstdint>
#include <string>

#include "runtime/nn/model_builder.h"

namespace ringmaster::nn {

// How a layer's weights begin. Biases begin at 0 unless said.
enum class WeightInit {
  kKaiming,           // before a ReLU, GELU or SiLU
  kXavier,            // before a tanh, or nothing
  kLeCunUniform,      // variance 1 / fan_in, as a uniform draw (LeCun, Bottou, Orr, Müller:
                      // "Efficient BackProp", 1998, eq. 16); what Caffe calls xavier
  kKaimingNormal,     // variance 2 / fan_in, drawn from a normal distribution
  kKaimingNormalOut,  // variance 2 / fan_out, the same (He et al., eq. 14)
  kFanInUniform,      // weights and biases in [-1, 1) / sqrt(fan_in), PyTorch's default
  kSmallNormal,       // of deviation 0.01 (Krizhevsky, Sutskever, Hinton: "ImageNet classification
                      // with deep convolutional neural networks", 2012, section 5)
};

Initialiser Kaiming(int64_t fan_in);
Initialiser Xavier(int64_t fan_in, int64_t fan_out);
// Uniform with this standard deviation.
Initialiser OfDeviation(double deviation);

struct Conv2dOptions {
  int64_t channels = 0;  // output
  int64_t kernel = 0;    // side of the square
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  WeightInit init = WeightInit::kKaiming;
};

// x [N, C, H, W]. Parameters NAME.weight [channels, C/groups, kernel, kernel] and, with a bias,
// NAME.bias.
ValueId Conv2d(ModelBuilder& b, const std::string& name, ValueId x, const Conv2dOptions& options);

// x [..., in]. Parameters NAME.weight [features, in] and, with a bias, NAME.bias.
ValueId Linear(ModelBuilder& b, const std::string& name, ValueId x, int64_t features,
               bool bias = true, WeightInit init = WeightInit::kKaiming);
// With weights drawn as `weight` says instead of by what follows.
ValueId Linear(ModelBuilder& b, const std::string& name, ValueId x, int64_t features, bool bias,
               Initialiser weight);

// x [N, C] or [N, C, H, W]. Parameters NAME.gamma, NAME.beta; states NAME.running_mean,
// NAME.running_variance; [C] each. `momentum` is the share of the old state that a step keeps.
// Training normalises by the shard's statistics, or those of the step's whole batch where the
// builder's options say so; evaluation by the running ones.
ValueId BatchNorm(ModelBuilder& b, const std::string& name, ValueId x, double epsilon,
                  double momentum);

// x [..., D], normalised over the last axis with an epsilon of 1e-5. Parameters NAME.gamma,
// NAME.beta, [D] each.
ValueId LayerNorm(ModelBuilder& b, const std::string& name, ValueId x);

// Drops a share of `rate` in [0, 1) of x's elements. x itself in an evaluation graph, or when the
// rate is 0.
ValueId Dropout(ModelBuilder& b, const std::string& name, ValueId x, double rate);

enum class PoolKind { kMax, kAverage };

// x [N, C, H, W], windows `kernel` square.
ValueId Pool(ModelBuilder& b, const std::string& name, ValueId x, PoolKind kind, int64_t kernel,
             int64_t stride, int64_t padding);

// x [N, C, H, W] to [N, C, size, size].
ValueId AdaptivePool(ModelBuilder& b, const std::string& name, ValueId x, int64_t size,
                     PoolKind kind = PoolKind::kAverage);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_LAYERS_H_
