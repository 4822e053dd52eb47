// What is wrong with a manifest, and where in its file.
#ifndef RINGMASTER_OPERATOR_API_DIAGNOSTIC_H_
#define RINGMASTER_OPERATOR_API_DIAGNOSTIC_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::api {

struct Diagnostic {
  int line = 0;      // from 1; 0 where it has none
  std::string path;  // spec.workers.minReplicas; may be empty
  std::string message;
};

// Where each path of a document stands. Value type.
class SourceMap {
 public:
  void Set(std::string_view path, int line) { lines_.insert_or_assign(std::string(path), line); }

  // The line of the path or, where it has none (a field that is missing), of the nearest path
  // around it; 0 for neither.
  int LineOf(std::string_view path) const;

 private:
  std::map<std::string, int, std::less<>> lines_;
};

// "file:line: path: message", one a line, in the order of lines. Parts that are absent are left
// out.
std::string FormatDiagnostics(std::string_view filename, std::vector<Diagnostic> diagnostics);

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_DIAGNOSTIC_H_
