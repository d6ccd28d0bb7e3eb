#include "manifest/file_name.h"

#include <string>

#include "gtest/gtest.h"

namespace mega::manifest {
namespace {

TEST(IsFileName, OneNameInAFolder) {
  for (const std::string& name :
       {std::string("a"), std::string("model-00001.safetensors"), std::string("..."),
        std::string("wéights"), std::string(255, 'a')})
    EXPECT_TRUE(IsFileName(name)) << name;
}

TEST(IsFileName, NoWayOutOfIt) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("/etc/passwd"),
        std::string("../a"), std::string("a/b"), std::string("a/"), std::string("a\0b", 3),
        std::string(256, 'a')})
    EXPECT_FALSE(IsFileName(name)) << name;
}

}  // namespace
}  // namespace mega::manifest
