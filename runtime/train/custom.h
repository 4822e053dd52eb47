// Calls the parts of the user's own (parts.h) that a configuration names, and checks what they
// give: whatever is wrong with it is an error that names the part, never a crash of the step.
//
// Every function gives kInvalidArgument for a name that is not registered (with those that are), a
// setting that is wrong or unknown (with its path), an exception, and what is said below.
// std::bad_alloc passes through. Thread-safe as far as the parts are.
#ifndef RINGMASTER_RUNTIME_TRAIN_CUSTOM_H_
#define RINGMASTER_RUNTIME_TRAIN_CUSTOM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/nn/model.h"
#include "runtime/train/parts.h"

namespace ringmaster::training::v1alpha1 {
struct Custom;
struct CustomOptimizer;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::train {

// Errors of nn::BuildModel.
absl::StatusOr<nn::Model> BuildCustom(const Parts& parts, const training::v1alpha1::Custom& config,
                                      const nn::BuildOptions& options);

// kInvalidArgument, with the first difference, unless both have the same parameters and states:
// `other` being the network for another mode and size of shard.
absl::Status CheckSameLayout(const nn::Model& model, const nn::Model& other);

// Both parts are there, of one format, with a fingerprint. Besides the function's own errors,
// kInvalidArgument for no training samples, a format that no network can take, and labels that are
// not classes.
absl::StatusOr<data::Splits> LoadCustom(const Parts& parts,
                                        const training::v1alpha1::Custom& config,
                                        const std::string& workspace);

// Besides the function's own errors, kInvalidArgument for state buffers that are not setup.size
// long, or whose names are empty or alike.
absl::StatusOr<std::unique_ptr<optim::Optimizer>> MakeCustom(
    const Parts& parts, const training::v1alpha1::CustomOptimizer& config,
    const OptimizerSetup& setup);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_CUSTOM_H_
