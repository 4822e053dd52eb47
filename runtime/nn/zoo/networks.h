// The networks of nn/zoo.h, and what they share. Internal to the zoo.
#ifndef RINGMASTER_RUNTIME_NN_ZOO_NETWORKS_H_
#define RINGMASTER_RUNTIME_NN_ZOO_NETWORKS_H_

#include <cstdint>
#include <string>

#include "runtime/nn/layers.h"
#include "runtime/nn/model_builder.h"

namespace ringmaster::nn::zoo {

struct NetworkOptions {
  double width = 1;  // of the hidden layers, as a multiple of the published one
  double dropout = 0;
  int64_t blocks = 0;  // where they can be set
};

ValueId AlexNet(ModelBuilder& b, const NetworkOptions& options, ValueId x);
ValueId DenseNet121(ModelBuilder& b, const NetworkOptions& options, ValueId x);
ValueId Gpt2(ModelBuilder& b, const NetworkOptions& options, ValueId tokens);
ValueId LeNet(ModelBuilder& b, const NetworkOptions& options, ValueId x);
ValueId LeNetBn(ModelBuilder& b, const NetworkOptions& options, ValueId x);
ValueId ResNet18(ModelBuilder& b, const NetworkOptions& options, ValueId x);
ValueId ResNet50(ModelBuilder& b, const NetworkOptions& options, ValueId x);
ValueId Vgg16(ModelBuilder& b, const NetworkOptions& options, ValueId x);

// `channels` times the width, rounded to a multiple of 8 (a vector of floats) and at least that;
// at width 1 the channels themselves.
int64_t Scaled(int64_t channels, double width);

// Batch norm as torchvision's networks have it.
ValueId Norm(ModelBuilder& b, const std::string& name, ValueId x);
ValueId Relu(ModelBuilder& b, const std::string& name, ValueId x);
// The mean of each channel's whole image: [N, C].
ValueId GlobalPool(ModelBuilder& b, const std::string& name, ValueId x);
ValueId Flatten(ModelBuilder& b, const std::string& name, ValueId x);
// One score for each class of the data.
ValueId Head(ModelBuilder& b, const std::string& name, ValueId x, WeightInit init);

}  // namespace ringmaster::nn::zoo

#endif  // RINGMASTER_RUNTIME_NN_ZOO_NETWORKS_H_
