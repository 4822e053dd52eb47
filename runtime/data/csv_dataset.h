// A data set from comma-separated numbers: one sample a line, one column of which is its class, or
// several of which are labels that hold or do not.
//
// Cells are plain decimal numbers without quotes; blanks around them, CRLF line ends, a byte-order
// mark and empty lines at the end of the file are accepted. Anything else is refused with its line.
#ifndef RINGMASTER_RUNTIME_DATA_CSV_DATASET_H_
#define RINGMASTER_RUNTIME_DATA_CSV_DATASET_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"

namespace ringmaster::training::v1alpha1 {
struct CsvData;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::data {

// Loads the file; errors as data::Load has them. With holdOutEvery n the n-th, 2n-th, ... sample of
// the file are held out. Features are divided by `scale` in double and kept as f32.
absl::StatusOr<Splits> LoadCsv(const training::v1alpha1::CsvData& config,
                               const std::string& workspace);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_CSV_DATASET_H_
