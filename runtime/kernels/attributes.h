// Attributes: the constants of a graph node, by name. Read when a kernel is prepared, never in a
// step.
#ifndef RINGMASTER_RUNTIME_KERNELS_ATTRIBUTES_H_
#define RINGMASTER_RUNTIME_KERNELS_ATTRIBUTES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ringmaster::kernels {

// A small ordered list of name = value, where a value is an integer, a real number or a list of
// integers. An attribute that is absent, or of another type, reads as 0, 0.0 or the empty list.
class Attributes {
 public:
  using Value = std::variant<int64_t, double, std::vector<int64_t>>;

  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Value>> entries) : entries_(entries) {}

  int64_t Int(std::string_view name) const;
  double Real(std::string_view name) const;
  std::vector<int64_t> Ints(std::string_view name) const;

  // A copy with this entry, in the place of one of that name if there is one.
  Attributes With(std::string_view name, Value value) const;

  // "pad=[1, 1] stride=[2, 2]", in the order in which they were given; empty for none.
  std::string ToString() const;

 private:
  template <typename T>
  const T* Find(std::string_view name) const;

  std::vector<std::pair<std::string, Value>> entries_;
};

}  // namespace ringmaster::kernels

#endif  // RINGMASTER_RUNTIME_KERNELS_ATTRIBUTES_H_
