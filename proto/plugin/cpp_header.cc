#include "proto/plugin/cpp_header.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "proto/plugin/cpp_types.h"

namespace ringmaster::plugin {
namespace {

namespace pb = google::protobuf;

constexpr std::size_t kLineWidth = 100;

// The text as // lines, broken between words.
std::string Comment(const std::string& text, const std::string& indent) {
  std::string out;
  std::string line;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && indent.size() + 3 + line.size() + 1 + word.size() > kLineWidth) {
      out += fmt::format("{}// {}\n", indent, line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return line.empty() ? out : out + fmt::format("{}// {}\n", indent, line);
}

std::string IncludeGuard(const pb::FileDescriptor& file) {
  std::string guard;
  for (const char c : HeaderOf(file)) {
    const auto letter = static_cast<unsigned char>(c);
    guard += std::isalnum(letter) != 0 ? static_cast<char>(std::toupper(letter)) : '_';
  }
  return guard + "_";
}

std::string Includes(const pb::FileDescriptor& file) {
  std::string out =
      "#include <cstdint>\n#include <map>\n#include <optional>\n#include <string>\n#include "
      "<vector>\n\n"
      "#include <nlohmann/json.hpp>\n\n#include \"absl/status/statusor.h\"\n#include "
      "\"common/clock.h\"\n"
      "#include \"proto/schema/schema.h\"\n";
  for (int i = 0; i < file.dependency_count(); ++i) {
    const pb::FileDescriptor& other = *file.dependency(i);
    if (other.package() == file.package()) out += fmt::format("#include \"{}\"\n", HeaderOf(other));
  }
  return out;
}

std::string EnumClass(const pb::EnumDescriptor& enumeration, SchemaBuilder& builder) {
  const schema::Enum& table = *builder.Build(enumeration);
  std::string out =
      Comment(table.description, "") + fmt::format("enum class {} {{\n", enumeration.name());
  for (int i = 0; i < enumeration.value_count(); ++i) {
    if (i > 0) out += Comment(table.values[static_cast<std::size_t>(i) - 1].description, "  ");
    out += fmt::format("  {},\n", EnumeratorName(*enumeration.value(i)));
  }
  return out + fmt::format(
                   "}};\n// As JSON spells it; discarded where it is kUnspecified.\nnlohmann::json "
                   "ToJson({0} value);\n"
                   "void FromCheckedJson(const nlohmann::json& json, {0}& out);\n"
                   "const schema::Enum& {0}Values();\n\n",
                   enumeration.name());
}

std::string Struct(const pb::Descriptor& descriptor, SchemaBuilder& builder) {
  const schema::Message& message = *builder.Build(descriptor);
  std::string out =
      Comment(message.description, "") + fmt::format("struct {} {{\n", descriptor.name());
  if (message.resource)
    out += "  // As it came; ToJson writes it back as it is.\n  nlohmann::json metadata;\n";
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const pb::FieldDescriptor& member = *descriptor.field(i);
    const schema::Field& field = *schema::FindField(message, member.json_name());
    out += Comment(field.description, "  ");
    out += fmt::format("  {} {}{};\n", MemberType(member, field), MemberName(member),
                       MemberInitialiser(member, field));
  }
  return out +
         fmt::format("\n  bool operator==(const {}&) const = default;\n}};\n\n", descriptor.name());
}

std::string CodecOf(const pb::Descriptor& descriptor) {
  return fmt::format(
      "nlohmann::json ToJson(const {0}& value);\n"
      "void FromCheckedJson(const nlohmann::json& json, {0}& out);\n"
      "template <>\nabsl::StatusOr<{0}> FromJson<{0}>(nlohmann::json json);\n"
      "template <>\nconst schema::Message& SchemaOf<{0}>();\n\n",
      descriptor.name());
}

constexpr char kCodecDoc[] =
    R"(// ToJson prints zeros; it leaves out absent optionals and numbers that are not finite.
// FromJson fills in defaults and checks the whole object: kInvalidArgument with every problem, one "path: message" a line.
// FromCheckedJson skips the check: what CheckAndDefault (proto/schema/check.h) has passed decodes; anything else throws.
template <typename T>
absl::StatusOr<T> FromJson(nlohmann::json json);
template <typename T>
const schema::Message& SchemaOf();

)";

}  // namespace

std::string CppHeader(const pb::FileDescriptor& file, SchemaBuilder& builder) {
  const std::string guard = IncludeGuard(file);
  std::string out = fmt::format(
      "// Generated from {} by protoc-gen-ringmaster. Do not edit.\n#ifndef {}\n#define {}\n\n",
      file.name(), guard, guard);
  out += Includes(file) + fmt::format("\nnamespace {} {{\n\n", NamespaceOf(file));
  for (int i = 0; i < file.enum_type_count(); ++i) out += EnumClass(*file.enum_type(i), builder);
  const auto messages = InOrderOfUse(file);
  for (const pb::Descriptor* message : messages) out += Struct(*message, builder);
  out += kCodecDoc;
  for (const pb::Descriptor* message : messages) out += CodecOf(*message);
  return out + fmt::format("}}  // namespace {}\n\n#endif  // {}\n", NamespaceOf(file), guard);
}

}  // namespace ringmaster::plugin
