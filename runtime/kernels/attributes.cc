#include "runtime/kernels/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::kernels {
namespace {

std::string Print(int64_t v) {
  return fmt::format("{}", v);
}
std::string Print(double v) {
  return fmt::format("{}", v);
}
std::string Print(const std::vector<int64_t>& v) {
  return fmt::format("[{}]", fmt::join(v, ", "));
}

}  // namespace

template <typename T>
const T* Attributes::Find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return std::get_if<T>(&value);
  }
  return nullptr;
}

int64_t Attributes::Int(std::string_view name) const {
  const auto* v = Find<int64_t>(name);
  return v != nullptr ? *v : 0;
}

double Attributes::Real(std::string_view name) const {
  const auto* v = Find<double>(name);
  return v != nullptr ? *v : 0.0;
}

std::vector<int64_t> Attributes::Ints(std::string_view name) const {
  const auto* v = Find<std::vector<int64_t>>(name);
  return v != nullptr ? *v : std::vector<int64_t>{};
}

Attributes Attributes::With(std::string_view name, Value value) const {
  Attributes copy = *this;
  for (auto& [key, old] : copy.entries_) {
    if (key != name) continue;
    old = std::move(value);
    return copy;
  }
  copy.entries_.emplace_back(name, std::move(value));
  return copy;
}

std::string Attributes::ToString() const {
  std::string text;
  for (const auto& [key, value] : entries_) {
    if (!text.empty()) text += ' ';
    text += key + '=' + std::visit([](const auto& v) { return Print(v); }, value);
  }
  return text;
}

}  // namespace ringmaster::kernels
