// A data set from plain text: windows of characters, each labelled with the character that follows
// it.
//
// A character is a byte. The vocabulary is the bytes that the whole file contains, in ascending
// order; a token is a place in it. Windows lie side by side: sample i of a part holds its
// characters i*window to (i+1)*window - 1, and its labels are the same, shifted by one.
#ifndef RINGMASTER_RUNTIME_DATA_TEXT_DATASET_H_
#define RINGMASTER_RUNTIME_DATA_TEXT_DATASET_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"

namespace ringmaster::training::v1alpha1 {
struct TextData;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::data {

// Loads the file; errors as data::Load has them. The last `holdOut` of the text is held out.
absl::StatusOr<Splits> LoadText(const training::v1alpha1::TextData& config,
                                const std::string& workspace);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_TEXT_DATASET_H_
