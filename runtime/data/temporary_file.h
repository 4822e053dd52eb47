// For the tests of this folder: a data file in a directory that is removed with the object.
#ifndef RINGMASTER_RUNTIME_DATA_TEMPORARY_FILE_H_
#define RINGMASTER_RUNTIME_DATA_TEMPORARY_FILE_H_

#include <filesystem>
#include <fstream>
#include <stdlib.h>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace ringmaster::data {

class TemporaryFile {
 public:
  static constexpr char kName[] = "data.txt";

  explicit TemporaryFile(std::string_view content) {
    std::string pattern = (std::filesystem::temp_directory_path() / "rm-data-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    std::ofstream(directory_ / kName, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove_all(directory_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string workspace() const { return directory_.string(); }
  std::string path() const { return (directory_ / kName).string(); }

 private:
  std::filesystem::path directory_;
};

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_TEMPORARY_FILE_H_
