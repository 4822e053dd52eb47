// Activations within a program. Internal to kernels/onednn/: this header includes oneDNN's.
#ifndef RINGMASTER_RUNTIME_KERNELS_ONEDNN_ELTWISE_H_
#define RINGMASTER_RUNTIME_KERNELS_ONEDNN_ELTWISE_H_

#include "runtime/kernels/activation.h"
#include "runtime/kernels/onednn/program.h"

namespace ringmaster::kernels::onednn {

// Takes the activation of one buffer into another, or in its place; both lie as `desc` says. kNone
// adds nothing, and kRelu, which lets pass what is no number, is for a buffer's own place.
void AddActivation(Program& program, Activation activation, int from, int to,
                   const dnnl::memory::desc& desc);

}  // namespace ringmaster::kernels::onednn

#endif  // RINGMASTER_RUNTIME_KERNELS_ONEDNN_ELTWISE_H_
