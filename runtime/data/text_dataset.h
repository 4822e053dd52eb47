// A data set from text: windows of tokens, each labelled with the token that follows it.
//
// A token of plain text is a character, which is a byte: a place in the vocabulary, the bytes that
// the whole file contains, in ascending order. Where the manifest gives the size of a vocabulary
// the file is a tokenizer's: little-endian numbers of two bytes, or of four where two are not
// enough, as nanoGPT's and other trainers' `train.bin` (github.com/karpathy/nanoGPT,
// data/openwebtext/prepare.py) without any header. Windows lie side by side: sample i of a part
// holds its tokens i*window to (i+1)*window - 1, and its labels are the same, shifted by one.
#ifndef RINGMASTER_RUNTIME_DATA_TEXT_DATASET_H_
#define RINGMASTER_RUNTIME_DATA_TEXT_DATASET_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"

namespace ringmaster::training::v1alpha1 {
struct TextData;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::data {

// Loads the file; errors as data::Load has them, also for a token that is not in the vocabulary,
// whose place is named. The last `holdOut` of the text is held out.
absl::StatusOr<Splits> LoadText(const training::v1alpha1::TextData& config,
                                const std::string& workspace);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_TEXT_DATASET_H_
