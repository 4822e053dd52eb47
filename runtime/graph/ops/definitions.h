// Every op definition of graph/ops/, for the table in graph/op_definition.cc.
#ifndef RINGMASTER_RUNTIME_GRAPH_OPS_DEFINITIONS_H_
#define RINGMASTER_RUNTIME_GRAPH_OPS_DEFINITIONS_H_

#include "runtime/graph/op_definition.h"

namespace ringmaster::graph {

extern const OpDefinition kAdaptiveAvgPool2d;
extern const OpDefinition kAdaptiveAvgPool2dGrad;
extern const OpDefinition kAdaptiveMaxPool2d;
extern const OpDefinition kAdaptiveMaxPool2dGrad;
extern const OpDefinition kAdd;
extern const OpDefinition kAvgPool2d;
extern const OpDefinition kAvgPool2dGrad;
extern const OpDefinition kBatchMatMul;
extern const OpDefinition kBatchMoments;
extern const OpDefinition kBatchNorm;
extern const OpDefinition kBatchNormAddReluGrad;
extern const OpDefinition kBatchNormAgain;
extern const OpDefinition kBatchNormGrad;
extern const OpDefinition kBatchNormInference;
extern const OpDefinition kBatchNormInferenceGrad;
extern const OpDefinition kBatchNormMaxPool2d;
extern const OpDefinition kBatchNormMaxPool2dGrad;
extern const OpDefinition kBatchNormSums;
extern const OpDefinition kBatchNormSynchronised;
extern const OpDefinition kBatchNormSynchronisedGrad;
extern const OpDefinition kBatchStatistics;
extern const OpDefinition kBinaryCrossEntropy;
extern const OpDefinition kBinaryCrossEntropyGrad;
extern const OpDefinition kCausalAttention;
extern const OpDefinition kCausalAttentionGrad;
extern const OpDefinition kConcat;
extern const OpDefinition kConstant;
extern const OpDefinition kConv2d;
extern const OpDefinition kConv2dBatchNorm;
extern const OpDefinition kConv2dGradInput;
extern const OpDefinition kConv2dGradWeight;
extern const OpDefinition kConv2dMaxPool2d;
extern const OpDefinition kConv2dMaxPool2dGradWeight;
extern const OpDefinition kCopy;
extern const OpDefinition kDivide;
extern const OpDefinition kDropout;
extern const OpDefinition kEmbedding;
extern const OpDefinition kEmbeddingGrad;
extern const OpDefinition kExactGelu;
extern const OpDefinition kExactGeluGrad;
extern const OpDefinition kGelu;
extern const OpDefinition kGeluGrad;
extern const OpDefinition kLayerNorm;
extern const OpDefinition kLayerNormGrad;
extern const OpDefinition kLinear;
extern const OpDefinition kLinearActivation;
extern const OpDefinition kLogSoftmax;
extern const OpDefinition kLogSoftmaxGrad;
extern const OpDefinition kMatMul;
extern const OpDefinition kMaxOver;
extern const OpDefinition kMaxOverGrad;
extern const OpDefinition kMaxPool2d;
extern const OpDefinition kMaxPool2dGrad;
extern const OpDefinition kMaxPool2dTaps;
extern const OpDefinition kMaxPool2dTapsGrad;
extern const OpDefinition kMultiply;
extern const OpDefinition kNll;
extern const OpDefinition kNllGrad;
extern const OpDefinition kOneHot;
extern const OpDefinition kPad;
extern const OpDefinition kRelu;
extern const OpDefinition kReluGrad;
extern const OpDefinition kReorder;
extern const OpDefinition kReshape;
extern const OpDefinition kScale;
extern const OpDefinition kSigmoid;
extern const OpDefinition kSigmoidGrad;
extern const OpDefinition kSilu;
extern const OpDefinition kSiluGrad;
extern const OpDefinition kSlice;
extern const OpDefinition kSoftmax;
extern const OpDefinition kSoftmaxCrossEntropy;
extern const OpDefinition kSoftmaxCrossEntropyGrad;
extern const OpDefinition kSoftmaxGrad;
extern const OpDefinition kSquaredError;
extern const OpDefinition kSquaredErrorGrad;
extern const OpDefinition kSubtract;
extern const OpDefinition kSumOverShards;
extern const OpDefinition kSumTo;
extern const OpDefinition kTanh;
extern const OpDefinition kTanhGrad;
extern const OpDefinition kTranspose;

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_OPS_DEFINITIONS_H_
