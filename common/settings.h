// Settings: the free part of a manifest, which only a part of the user's own understands.
//
//   const int64_t width = settings.Integer("width", 64);
//   if (width % 8 != 0) settings.Fail("width", "is no multiple of 8");
//
// Whoever reads says at each value what its type is and what it is where the manifest is silent, so
// that there is no second list of what exists: Finish refuses whatever nobody has asked for. Errors
// stick: the first mistake is kept in status(), the call gives the default, and code goes on.
//
// Movable, not copyable. Not thread-safe.
#ifndef RINGMASTER_COMMON_SETTINGS_H_
#define RINGMASTER_COMMON_SETTINGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ringmaster {

class Settings {
 public:
  // `path` says where they stand, for messages ("spec.trainer.model.custom.settings"); `json` is an
  // object's text, or empty for none.
  explicit Settings(std::string path, const std::string& json = "");
  ~Settings();
  Settings(Settings&& other) noexcept;
  Settings& operator=(Settings&& other) noexcept;

  // The setting `name`, or `otherwise` where the manifest has none, or one of another type: then
  // status() says so, with its path. A whole number is also a Number.
  int64_t Integer(const std::string& name, int64_t otherwise);
  double Number(const std::string& name, double otherwise);
  bool Flag(const std::string& name, bool otherwise);
  std::string Text(const std::string& name, const std::string& otherwise);
  std::vector<int64_t> Integers(const std::string& name, const std::vector<int64_t>& otherwise);

  // Records that `name` has a value that cannot be: "PATH.NAME: MESSAGE".
  void Fail(const std::string& name, const std::string& message);

  // The first mistake, kInvalidArgument, or OK.
  const absl::Status& status() const;
  // status(), or kInvalidArgument for a setting that nobody has asked for; lists those that
  // somebody has.
  absl::Status Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_SETTINGS_H_
