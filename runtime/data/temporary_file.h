// For the tests of this folder: a data file in a directory that is removed with the object.
#ifndef RINGMASTER_RUNTIME_DATA_TEMPORARY_FILE_H_
#define RINGMASTER_RUNTIME_DATA_TEMPORARY_FILE_H_

#include <fstream>
#include <string>
#include <string_view>

#include "common/temporary_folder.h"

namespace ringmaster::data {

class TemporaryFile {
 public:
  static constexpr char kName[] = "data.txt";

  explicit TemporaryFile(std::string_view content) {
    std::ofstream(path(), std::ios::binary) << content;
  }

  std::string workspace() const { return folder_.path(); }
  std::string path() const { return folder_.path() / kName; }

 private:
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
};

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_TEMPORARY_FILE_H_
