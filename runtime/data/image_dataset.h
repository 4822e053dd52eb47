// What becomes of a data set's images before a network sees them: `data.images` of the manifest.
//
// What is left to chance, the box and whether an image is mirrored, follows from the seed and the
// sample's position in the stream alone (runtime/tensor/random.h): it is the same for any number of
// workers, and after any loss.
#ifndef RINGMASTER_RUNTIME_DATA_IMAGE_DATASET_H_
#define RINGMASTER_RUNTIME_DATA_IMAGE_DATASET_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/resize.h"
#include "runtime/tensor/random.h"

namespace ringmaster::training::v1alpha1 {
struct Crop;
struct Images;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::data {

// What the whole run has to do with its images.
struct ImageRun {
  uint64_t seed = 0;
  // From this position on training images are seen whole.
  uint64_t whole_from = std::numeric_limits<uint64_t>::max();
};

// Puts data sets of changed images in the places of `splits`, whose fingerprint stays: the samples
// are the same. `images` must outlive them. Filling them blocks for the arithmetic, too, which
// the compute threads share, and allocates only in the first call of a thread.
// kInvalidArgument, naming the field, where it does not fit the data.
absl::Status ChangeImages(const training::v1alpha1::Images& images, const ImageRun& run,
                          Splits& splits);

// The box that a random crop takes of an image of size `image`, drawn from `stream`. The aspect of
// a box is its width by its height (Szegedy et al.: "Going deeper with convolutions", CVPR 2015).
Box DrawBox(const training::v1alpha1::Crop& crop, ImageSize image, tensor::RandomStream& stream);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_IMAGE_DATASET_H_
