// protoc-gen-ringmaster: writes what is generated from the API's .proto files. The parameter says
// what:
//
//   --ringmaster_out=cpp:DIR    STEM.api.h and STEM.api.cc: structs, schema table and JSON codec
//   --ringmaster_out=crd:DIR    GROUP_PLURAL.yaml: the CustomResourceDefinition of each kind in the
//   file
//   --ringmaster_out=docs:DIR   api.md: the reference of each kind in the file
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/compiler/code_generator.h>
#include <google/protobuf/compiler/plugin.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include "proto/plugin/cpp_header.h"
#include "proto/plugin/cpp_source.h"
#include "proto/plugin/crd.h"
#include "proto/plugin/docs.h"
#include "proto/plugin/schema_builder.h"

namespace ringmaster::plugin {
namespace {

namespace pb = google::protobuf;

class RingmasterGenerator : public pb::compiler::CodeGenerator {
 public:
  std::uint64_t GetSupportedFeatures() const override { return FEATURE_PROTO3_OPTIONAL; }

  bool Generate(const pb::FileDescriptor* file, const std::string& parameter,
                pb::compiler::GeneratorContext* context, std::string* error) const override {
    SchemaBuilder builder;
    for (int i = 0; i < file->message_type_count(); ++i) builder.Build(*file->message_type(i));
    if (!builder.errors().empty()) {
      *error = fmt::format("{}", fmt::join(builder.errors(), "\n"));
      return false;
    }
    if (parameter == "cpp") {
      WriteCpp(*file, builder, context);
    } else if (parameter == "crd" || parameter == "docs") {
      WriteResources(*file, builder, parameter, context);
    } else {
      *error = fmt::format("the parameter is '{}'; it must be cpp, crd or docs", parameter);
      return false;
    }
    return true;
  }

 private:
  static void Write(pb::compiler::GeneratorContext* context, const std::string& name,
                    const std::string& text) {
    const std::unique_ptr<pb::io::ZeroCopyOutputStream> stream(context->Open(name));
    void* buffer = nullptr;
    int size = 0;
    std::size_t written = 0;
    while (written < text.size() && stream->Next(&buffer, &size)) {
      const std::size_t count = std::min(text.size() - written, static_cast<std::size_t>(size));
      text.copy(static_cast<char*>(buffer), count, written);
      written += count;
      if (count < static_cast<std::size_t>(size)) stream->BackUp(size - static_cast<int>(count));
    }
  }

  static void WriteCpp(const pb::FileDescriptor& file, SchemaBuilder& builder,
                       pb::compiler::GeneratorContext* context) {
    const std::string stem = file.name().substr(0, file.name().rfind('.'));
    Write(context, stem + ".api.h", CppHeader(file, builder));
    Write(context, stem + ".api.cc", CppSource(file, builder));
  }

  static void WriteResources(const pb::FileDescriptor& file, SchemaBuilder& builder,
                             const std::string& what, pb::compiler::GeneratorContext* context) {
    for (int i = 0; i < file.message_type_count(); ++i) {
      const schema::Message& message = *builder.Build(*file.message_type(i));
      if (!message.resource) continue;
      if (what == "docs") {
        Write(context, "api.md", Reference(message));
      } else {
        Write(context, fmt::format("{}_{}.yaml", message.resource->group, message.resource->plural),
              CrdYaml(message));
      }
    }
  }
};

}  // namespace
}  // namespace ringmaster::plugin

int main(int argc, char** argv) {
  const ringmaster::plugin::RingmasterGenerator generator;
  return google::protobuf::compiler::PluginMain(argc, argv, &generator);
}
