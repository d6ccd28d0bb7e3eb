// Compares descriptor sets: what a release had on the wire, its successors have too.
#include <filesystem>
#include <fstream>
#include <map>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"

namespace mega {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace google::protobuf;  // NOLINT: descriptor protos by their short names

// Everything in a set, by full name, as a line that must stay equal.
class Inventory {
 public:
  explicit Inventory(const FileDescriptorSet& set) {
    for (const FileDescriptorProto& file : set.file()) {
      if (file.package() != "mega.v1" && file.package() != "google.rpc") continue;
      const std::string package = file.package() + ".";
      for (const DescriptorProto& message : file.message_type()) Add(package, message);
      for (const EnumDescriptorProto& words : file.enum_type()) Add(package, words);
      for (const ServiceDescriptorProto& service : file.service())
        for (const MethodDescriptorProto& method : service.method())
          lines_["rpc " + package + service.name() + "." + method.name()] =
              (method.client_streaming() ? "stream " : "") + method.input_type() + " → " +
              (method.server_streaming() ? "stream " : "") + method.output_type();
      for (const FieldDescriptorProto& option : file.extension()) Add(package, option);
    }
  }

  // What `later` lacks or has changed.
  std::vector<std::string> BrokenBy(const Inventory& later) const {
    std::vector<std::string> broken;
    for (const auto& [name, line] : lines_) {
      const auto found = later.lines_.find(name);
      if (found == later.lines_.end()) {
        broken.push_back(name + " is gone");
      } else if (found->second != line) {
        broken.push_back(name + " was '" + line + "' and is '" + found->second + "'");
      }
    }
    return broken;
  }
  size_t size() const { return lines_.size(); }

 private:
  // Keyed by number: a number never changes its meaning, a name never moves to another number.
  void Add(const std::string& scope, const FieldDescriptorProto& field) {
    lines_["field " + scope + std::to_string(field.number())] =
        field.name() + " " + FieldDescriptorProto::Type_Name(field.type()) + " " +
        field.type_name() + " " + FieldDescriptorProto::Label_Name(field.label()) +
        (field.proto3_optional() ? " optional" : "") +
        (field.has_oneof_index() && !field.proto3_optional() ? " oneof" : "");
  }
  void Add(const std::string& scope, const DescriptorProto& message) {
    const std::string name = scope + message.name();
    lines_["message " + name] = "";
    for (const FieldDescriptorProto& field : message.field()) Add(name + ".", field);
    for (const DescriptorProto& nested : message.nested_type()) Add(name + ".", nested);
    for (const EnumDescriptorProto& words : message.enum_type()) Add(name + ".", words);
  }
  void Add(const std::string& scope, const EnumDescriptorProto& words) {
    for (const EnumValueDescriptorProto& value : words.value())
      lines_["enum " + scope + words.name() + "." + std::to_string(value.number())] = value.name();
  }

  std::map<std::string, std::string> lines_;
};

FileDescriptorSet Read(const std::string& path) {
  FileDescriptorSet set;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good() && set.ParseFromIstream(&in)) << path;
  return set;
}

FileDescriptorProto& FileWith(FileDescriptorSet& set, const std::string& name) {
  for (FileDescriptorProto& file : *set.mutable_file())
    if (file.name() == name) return file;
  ADD_FAILURE() << name;
  return *set.add_file();
}

TEST(Wire, HoldsEverythingOfEveryRelease) {
  const Inventory present(Read(MEGA_WIRE_FILE));
  EXPECT_GT(present.size(), 400u);
  int releases = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(MEGA_TEST_DATA) + "/wire")) {
    if (entry.path().extension() != ".binpb") continue;
    EXPECT_THAT(Inventory(Read(entry.path())).BrokenBy(present), IsEmpty()) << entry.path();
    ++releases;
  }
  EXPECT_GE(releases, 1);
}

TEST(Wire, TheComparisonSeesEveryKindOfBreak) {
  const FileDescriptorSet before = Read(MEGA_WIRE_FILE);
  const auto broken = [&before](auto edit) {
    FileDescriptorSet after = before;
    edit(FileWith(after, "mega/v1/cluster.proto"));
    return Inventory(before).BrokenBy(Inventory(after));
  };
  EXPECT_THAT(broken([](FileDescriptorProto&) {}), IsEmpty());
  EXPECT_THAT(broken([](FileDescriptorProto& file) {
                FieldDescriptorProto& added = *file.mutable_message_type(0)->add_field();
                added.set_name("added");
                added.set_number(1000);
              }),
              IsEmpty());
  EXPECT_THAT(broken([](FileDescriptorProto& file) {
                file.mutable_message_type(0)->mutable_field(0)->set_name("renamed");
              }),
              ElementsAre(HasSubstr("and is 'renamed")));
  EXPECT_THAT(broken([](FileDescriptorProto& file) {
                file.mutable_message_type(0)->mutable_field(0)->set_number(77);
              }),
              ElementsAre(HasSubstr("is gone")));
  EXPECT_THAT(
      broken([](FileDescriptorProto& file) {
        file.mutable_message_type(0)->mutable_field(0)->set_type(FieldDescriptorProto::TYPE_INT32);
      }),
      ElementsAre(HasSubstr("TYPE_INT32")));
  EXPECT_THAT(broken([](FileDescriptorProto& file) {
                file.mutable_message_type(0)->mutable_field(0)->set_label(
                    FieldDescriptorProto::LABEL_REPEATED);
              }),
              ElementsAre(HasSubstr("LABEL_REPEATED")));
  EXPECT_THAT(broken([](FileDescriptorProto& file) {
                file.mutable_enum_type(0)->mutable_value(1)->set_name("OTHER");
              }),
              ElementsAre(HasSubstr("OTHER")));
  EXPECT_THAT(broken([](FileDescriptorProto& file) {
                file.mutable_service(0)->mutable_method(0)->set_server_streaming(true);
              }),
              ElementsAre(HasSubstr("stream")));
}

}  // namespace
}  // namespace mega
