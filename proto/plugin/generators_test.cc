// The generators on small .proto files of their own: what they write, and which mistakes they
// refuse.
#include <gmock/gmock.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include "proto/plugin/cel.h"
#include "proto/plugin/cpp_header.h"
#include "proto/plugin/crd.h"
#include "proto/plugin/docs.h"
#include "proto/plugin/schema_builder.h"
#include "proto/schema/yaml_writer.h"
#include "ringmaster/api/options.pb.h"

namespace ringmaster::plugin {
namespace {

namespace pb = google::protobuf;
using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Parses one .proto file against the options that are linked in.
class ProtoFile {
 public:
  explicit ProtoFile(const std::string& body) : pool_(pb::DescriptorPool::generated_pool()) {
    api::FieldRules::descriptor();  // links options.proto into the pool
    const std::string text =
        "syntax = \"proto3\"; package test.v1; import \"ringmaster/api/options.proto\";\n" + body;
    pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
    pb::io::Tokenizer tokenizer(&stream, nullptr);
    pb::compiler::Parser parser;
    pb::FileDescriptorProto proto;
    EXPECT_TRUE(parser.Parse(&tokenizer, &proto));
    proto.set_name("test.proto");
    file_ = pool_.BuildFile(proto);
  }

  const pb::FileDescriptor& file() const { return *file_; }
  const pb::Descriptor& message(const std::string& name) const {
    return *file_->FindMessageTypeByName(name);
  }

 private:
  pb::DescriptorPool pool_;
  const pb::FileDescriptor* file_ = nullptr;
};

std::vector<std::string> ErrorsOf(const std::string& body) {
  const ProtoFile proto(body);
  SchemaBuilder builder;
  for (int i = 0; i < proto.file().message_type_count(); ++i)
    builder.Build(*proto.file().message_type(i));
  return builder.errors();
}

constexpr char kWorkers[] = R"(
// How many.
message Workers {
  option (ringmaster.api.message) = {
    rules: {less_or_equal: {left: "low" right: "high"} mend: "lower it"}
    rules: {field_needs: {field: "high" needs: "low"}}
  };
  int32 low = 1 [(ringmaster.api.field) = {default_json: "1" minimum: 1}];
  // The most.
  optional int32 high = 2;
  string mode = 3 [(ringmaster.api.field) = {allowed: "a" allowed: "b" immutable: true}];
  oneof kind {
    option (ringmaster.api.oneof_required) = true;
    Workers2 left = 4;
    Workers2 right = 5 [(ringmaster.api.field) = {atomic: true}];
  }
}
message Workers2 {}
)";

TEST(SchemaBuilderTest, RefusesOptionsThatContradictThemselves) {
  EXPECT_THAT(ErrorsOf(kWorkers), IsEmpty());
  EXPECT_THAT(
      ErrorsOf("message M { int32 a = 1 [(ringmaster.api.field) = {default_json: \"{\"}]; }"),
      ElementsAre("test.v1.M.a: default_json is not JSON"));
  EXPECT_THAT(ErrorsOf("message M { int32 a = 1 [(ringmaster.api.field) = {required: true "
                       "default_json: \"1\"}]; }"),
              ElementsAre(HasSubstr("cannot be missing")));
  EXPECT_THAT(ErrorsOf("message M { string a = 1 [(ringmaster.api.field) = {pattern: \"[\"}]; }"),
              ElementsAre(HasSubstr("needs pattern_help"), HasSubstr("pattern: ")));
  EXPECT_THAT(ErrorsOf("message M { repeated M2 a = 1 [(ringmaster.api.field) = {list_map_keys: "
                       "\"k\"}]; } message M2 { string k = 1; }"),
              ElementsAre(HasSubstr("'k' is no required field")));
  EXPECT_THAT(ErrorsOf("message M { int32 a = 1 [(ringmaster.api.field) = {atomic: true}]; }"),
              ElementsAre(HasSubstr("atomic is for messages")));
  EXPECT_THAT(ErrorsOf("message M { fixed32 a = 1; }"),
              ElementsAre(HasSubstr("no fields of type fixed32")));
  EXPECT_THAT(ErrorsOf("message M { option (ringmaster.api.message) = {rules: {at_least_one: "
                       "{fields: \"x\"}}}; }"),
              ElementsAre("test.v1.M: a rule names x, which does not exist"));
  EXPECT_THAT(ErrorsOf("message M { option (ringmaster.api.message) = {rules: {less_or_equal: "
                       "{left: \"a\" right: \"a\"}}}; double a = 1; }"),
              ::testing::SizeIs(2));
}

TEST(CelTest, WritesARuleForEachKind) {
  const ProtoFile proto(kWorkers);
  SchemaBuilder builder;
  const Json validations = MessageValidations(*builder.Build(proto.message("Workers")));
  ASSERT_EQ(validations.size(), 4u);
  EXPECT_EQ(validations[0]["rule"], "(has(self.left) ? 1 : 0) + (has(self.right) ? 1 : 0) == 1");
  EXPECT_EQ(validations[0]["message"], "set exactly one of left, right");
  EXPECT_EQ(validations[1]["rule"], "!(has(self.high)) || self.low <= self.high");
  EXPECT_EQ(validations[1]["messageExpression"],
            "'%d is more than high (%d); lower it'.format([self.low, self.high])");
  EXPECT_EQ(validations[1]["fieldPath"], ".low");
  EXPECT_EQ(validations[2]["rule"], "!(has(self.high)) || true");
  EXPECT_EQ(validations[3]["rule"], "!has(oldSelf.mode) || has(self.mode)");
}

TEST(CelTest, AsksForEachStepOfAPathThatMayBeAbsent) {
  const schema::Message inner = {.name = "Inner",
                                 .fields = {{.name = "raw", .type = schema::Type::kRaw}}};
  const schema::Message outer = {
      .name = "Outer",
      .fields = {
          {.name = "in", .type = schema::Type::kMessage, .message = &inner, .default_json = "{}"}}};
  EXPECT_EQ(Presence(outer, "in"), "true");
  EXPECT_EQ(Presence(outer, "in.raw.list[2].x"),
            "has(self.in.raw) && has(self.in.raw.list) && size(self.in.raw.list) > 2 && "
            "has(self.in.raw.list[2].x)");
}

TEST(CrdTest, WritesStructuralSchemas) {
  const ProtoFile proto(kWorkers);
  SchemaBuilder builder;
  const Json schema = OpenApiOf(*builder.Build(proto.message("Workers")));
  EXPECT_EQ(schema["properties"]["low"],
            (Json{{"type", "integer"}, {"format", "int32"}, {"minimum", 1}, {"default", 1}}));
  EXPECT_EQ(schema["properties"]["mode"]["enum"], (Json{"a", "b"}));
  EXPECT_EQ(schema["properties"]["mode"]["x-kubernetes-validations"][0]["rule"], "self == oldSelf");
  EXPECT_EQ(schema["properties"]["left"], (Json{{"type", "object"}}));
  EXPECT_EQ(schema["properties"]["right"],
            (Json{{"type", "object"}, {"x-kubernetes-map-type", "atomic"}}));
}

TEST(CrdTest, AKeyedListIsMergedByItsKeysUnlessOneWriterHasAllOfIt) {
  schema::Message message = {.name = "M",
                             .fields = {{.name = "list",
                                         .type = schema::Type::kInt32,
                                         .shape = schema::Shape::kList,
                                         .list_map_keys = {"id"}}}};
  EXPECT_EQ(OpenApiOf(message)["properties"]["list"]["x-kubernetes-list-type"], "map");
  message.fields[0].atomic = true;
  const Json list = OpenApiOf(message)["properties"]["list"];
  EXPECT_EQ(list["x-kubernetes-list-type"], "atomic");
  EXPECT_FALSE(list.contains("x-kubernetes-list-map-keys"));
}

TEST(CrdTest, GivesRulesSightOfRawFieldsAndKeepsTheRest) {
  const schema::Message message = {
      .name = "M",
      .fields = {{.name = "raw", .type = schema::Type::kRaw, .raw_fields = {{"list[0].words"}}}}};
  EXPECT_EQ(OpenApiOf(message)["properties"]["raw"], Json::parse(R"({
    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    "properties": {"list": {"type": "array", "items": {
      "type": "object", "x-kubernetes-preserve-unknown-fields": true,
      "properties": {"words": {"type": "array", "items": {"type": "string"}}}}}}
  })"));
}

TEST(CppHeaderTest, WritesMembersInTheOrderOfUse) {
  const ProtoFile proto(
      "message A { B b = 1 [(ringmaster.api.field) = {required: true}]; optional bool template = "
      "2; } message B {}");
  SchemaBuilder builder;
  const std::string header = CppHeader(proto.file(), builder);
  EXPECT_LT(header.find("struct B {"), header.find("struct A {"));
  EXPECT_THAT(header, HasSubstr("  B b;\n  std::optional<bool> template_;\n"));
}

TEST(YamlWriterTest, QuotesWhatYamlWouldTakeForSomethingElse) {
  EXPECT_EQ(
      schema::ToYaml({{"plain", "a b"},
                      {"yes", "No"},
                      {"colon", "a: b"},
                      {"number", "1"},
                      {"empty", ""},
                      {"dash", "- x"}}),
      "colon: \"a: b\"\ndash: \"- x\"\nempty: \"\"\nnumber: \"1\"\nplain: a b\n\"yes\": \"No\"\n");
  EXPECT_EQ(schema::ToYaml({{"list", {{{"a", 1}, {"b", {1, 2}}}, "x", Json::object()}},
                            {"none", Json::array()}}),
            "list:\n- a: 1\n  b:\n  - 1\n  - 2\n- x\n- {}\nnone: []\n");
}

}  // namespace
}  // namespace ringmaster::plugin
