// Networks by name, as published; one file each in nn/zoo/.
//
//   lenet        Caffe's form of LeNet-5 (LeCun, Bottou, Bengio, Haffner: "Gradient-based learning
//                applied to document recognition", 1998): 431,080 parameters for 28x28 digits
//   lenet-bn     the same idea with today's parts, for images from 4x4
//   alexnet      Krizhevsky: "One weird trick for parallelizing convolutional neural networks",
//                2014; 61,100,840 parameters
//   vgg-16       Simonyan, Zisserman: "Very deep convolutional networks for large-scale image
//                recognition", ICLR 2015, configuration D; 138,357,544
//   resnet-18, resnet-50  He, Zhang, Ren, Sun: "Deep residual learning for image recognition", CVPR
//                2016, with the stride in the 3x3 convolution; 11,689,512 and 25,557,032
//   densenet-121 Huang, Liu, van der Maaten, Weinberger: "Densely connected convolutional
//                networks", CVPR 2017; 7,978,856
//   gpt-2        Radford et al.: "Language models are unsupervised multitask learners", 2019, the
//                smallest; 124,439,808
//
// Parameters are counted for 3x224x224 images of 1,000 classes, and 50,257 tokens. Layers and
// initial weights are torchvision's (lenet: Caffe's, gpt-2: OpenAI's, lenet-bn: ours), so that
// results can be compared; layer names are torchvision's, too.
//
//   RM_ASSIGN_OR_RETURN(nn::Model model, nn::BuildZoo({.name = "resnet-50"},
//       {.batch = 32, .sample = {{3, 224, 224}, DType::kF32}, .classes = 1000}));
//
// To add one: its file in nn/zoo/, a line in nn/zoo/networks.h, in nn/zoo.cc, in common/networks.h
// and in the API's list of names (trainer.proto).
#ifndef RINGMASTER_RUNTIME_NN_ZOO_H_
#define RINGMASTER_RUNTIME_NN_ZOO_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/nn/model.h"

namespace ringmaster::nn {

struct ZooSettings {
  std::string name;
  // The share of activations that its dropout layers drop; the published one where absent.
  std::optional<double> dropout;
  // Channels of the hidden layers (heads, in gpt-2) as a multiple of the published ones, rounded to
  // multiples of 8; in (0, 16]. For small machines and tests.
  double width = 1;
  // Blocks of gpt-2, at least 1; 12 where absent.
  std::optional<int64_t> layers;
  // The share of the old running statistics that a step keeps, in [0, 1]; torchvision's 0.9 where
  // absent.
  std::optional<double> norm_momentum;
};

// The network for samples of [channels, height, width] or, for gpt-2, of [time] tokens, with one
// score for each of options.classes. Images may have any size that the layers leave something of.
// Errors as BuildModel has them, without its "model: "; besides, kInvalidArgument for another name
// (the message lists the known ones), a setting that the network does not have, or data that it
// does not read.
absl::StatusOr<Model> BuildZoo(const ZooSettings& settings, const BuildOptions& options);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_ZOO_H_
