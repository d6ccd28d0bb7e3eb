// Where megactl goes, and whether it may go there in plain text.
#include "cli/client/target.h"

#include <filesystem>
#include <map>

#include "gmock/gmock.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_pki.h"

namespace mega::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kRemote[] = "head.example.org:7070";

class TargetTest : public ::testing::Test {
 protected:
  TargetTest() {
    std::filesystem::create_directories(folder_ / "megactl");
    const auto identity = pki_.User("ada");
    for (const auto& [name, text] :
         {std::pair("ca", identity->authority), std::pair("cert", identity->certificate),
          std::pair("key", identity->key)}) {
      mega::testing::WriteFile(folder_ / "megactl" + "/" + name, text);
    }
    std::filesystem::permissions(folder_ / "megactl/key", std::filesystem::perms::owner_read |
                                                              std::filesystem::perms::owner_write);
    environment_["XDG_CONFIG_HOME"] = folder_.path();
  }
  void Configure(const std::string& text) {
    mega::testing::WriteFile(folder_ / "megactl/config.yaml", text);
  }
  tls::Options Files() {
    return {.files = {folder_ / "megactl/ca", folder_ / "megactl/cert", folder_ / "megactl/key"}};
  }
  absl::StatusOr<Target> Find(const std::string& address, const tls::Options& tls = {}) {
    return FindTarget(address, "", tls, [&](const char* name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    });
  }
  using Identity = std::shared_ptr<const tls::Identity>;
  absl::StatusOr<Identity> Be(const std::string& address, const tls::Options& tls = {}) {
    MEGA_ASSIGN_OR_RETURN(const Target target, Find(address, tls));
    return IdentityAt(target);
  }
  std::string WhyNot(const std::string& address, const tls::Options& tls = {}) {
    const auto identity = Be(address, tls);
    return identity.ok() ? "nothing is in the way" : std::string(identity.status().message());
  }

  mega::testing::TempDir folder_;
  mega::testing::TestPki pki_;
  std::map<std::string, std::string> environment_;
};

TEST_F(TargetTest, PlainTextStaysOnThisMachineUnlessItIsAskedFor) {
  for (const char* address : {"", "127.0.0.1:7070", "[::1]:7070", "localhost:7070"}) {
    EXPECT_TRUE(Be(address).ok()) << address;
  }
  EXPECT_THAT(WhyNot(kRemote), HasSubstr("coordinator (from --coordinator) is " +
                                         std::string(kRemote) + ", which is beyond loopback"));
  EXPECT_THAT(WhyNot(kRemote), HasSubstr("--insecure"));
  EXPECT_TRUE(Be(kRemote, {.insecure = true}).ok());
  environment_["MEGACTL_INSECURE"] = "1";
  EXPECT_TRUE(Be(kRemote).ok());
  environment_["MEGACTL_INSECURE"] = "0";
  EXPECT_FALSE(Be(kRemote).ok());
  environment_["MEGACTL_INSECURE"] = "maybe";
  EXPECT_THAT(WhyNot(kRemote), HasSubstr("MEGACTL_INSECURE is 'maybe'"));
  environment_.erase("MEGACTL_INSECURE");
  Configure("insecure: true\n");
  EXPECT_TRUE(Be(kRemote).ok());
  Configure("insecure: perhaps\n");
  EXPECT_THAT(WhyNot(kRemote), HasSubstr("config.yaml:1: insecure is 'perhaps'"));
}

// `version`, `plan --spec` and others ask where, and never go there.
TEST_F(TargetTest, WhereNeedsNoPermissionAndNoCertificate) {
  EXPECT_EQ(Find(kRemote).value().address, kRemote);
  EXPECT_EQ(Find(kRemote, {.files = {"/nowhere/ca"}}).value().source, "--coordinator");
  EXPECT_THAT(WhyNot(kRemote, {.files = {"/nowhere/ca"}}), HasSubstr("--tls-cert"));
}

TEST_F(TargetTest, WithACertificateItGoesAnywhere) {
  EXPECT_NE(Be(kRemote, Files()).value(), nullptr);
  Configure("tls_ca: ca\ntls_cert: cert\ntls_key: key\n");
  EXPECT_NE(Be(kRemote).value(), nullptr);
}

TEST_F(TargetTest, WhatIsSaidOfTlsComesFromOnePlace) {
  Configure("tls_ca: ca\ntls_cert: cert\ntls_key: key\n");
  EXPECT_EQ(Be(kRemote, {.insecure = true}).value(), nullptr);
  Configure("insecure: true\n");
  EXPECT_NE(Be(kRemote, Files()).value(), nullptr);
  Configure("insecure: true\ntls_ca: ca\ntls_cert: cert\ntls_key: key\n");
  EXPECT_THAT(WhyNot(kRemote), HasSubstr("leave out one of them"));
}

TEST_F(TargetTest, ThatPlainTextMayNotLeaveIsSomethingSaid) {
  environment_["MEGACTL_INSECURE"] = "0";
  Configure("insecure: true\n");
  EXPECT_THAT(WhyNot(kRemote), HasSubstr("beyond loopback"));
  Configure("tls_ca: ca\ntls_cert: cert\ntls_key: key\n");
  EXPECT_NE(Be("").value(), nullptr) << "it says nothing against a certificate";
  EXPECT_EQ(Be(kRemote, {.insecure = true}).value(), nullptr) << "flags are nearer";
}

// A variable that was to name a file and is not set.
TEST_F(TargetTest, AnEmptyFileIsNoWayToPlainText) {
  for (const char* name : {"MEGACTL_TLS_CA", "MEGACTL_TLS_CERT", "MEGACTL_TLS_KEY"}) {
    environment_[name] = "";
    EXPECT_THAT(WhyNot(""), HasSubstr(std::string(name) + " is empty"));
    environment_.erase(name);
  }
  Configure("tls_ca: \"\"\n");
  EXPECT_THAT(WhyNot(""), HasSubstr("config.yaml:1: tls_ca is empty"));
}

}  // namespace
}  // namespace mega::cli
