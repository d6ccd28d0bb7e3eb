// Certificates that are made are those that are believed, and no others.
#include "cli/pki/authority.h"

#include <openssl/pem.h>
#include <sys/stat.h>

#include <fstream>

#include "base/tls/identity.h"
#include "base/tls/openssl.h"
#include "gmock/gmock.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_pki.h"

namespace mega::cli {
namespace {

using ::testing::HasSubstr;
using tls::PeerName;

const PeerName kNode1{PeerName::Kind::kNode, "n1"};
const PeerName kAnyUser{PeerName::Kind::kUser, ""};

class LoadTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = dir_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
    return path;
  }
  tls::Files FilesOf(const tls::Identity& identity) {
    return {Write("ca", identity.authority), Write("cert", identity.certificate),
            Write("key", identity.key)};
  }
  static std::string WhyNot(const tls::Files& files, const PeerName& expected = kNode1,
                            absl::Time now = absl::Now()) {
    const auto loaded = tls::Load(files, expected, now);
    return loaded.ok() ? "it was loaded" : std::string(loaded.status().message());
  }

  // Of another tool: the same certificate with other usages.
  std::string WithUsages(const std::string& certificate, const char* key, const char* extended) {
    tls::Certificate made(
        PEM_read_bio_X509(tls::ReadFrom(certificate).get(), nullptr, nullptr, nullptr));
    const tls::Key authority(PEM_read_bio_PrivateKey(tls::ReadFrom(pki_.authority().key).get(),
                                                     nullptr, nullptr, nullptr));
    for (const auto& [kind, value] :
         {std::pair(NID_key_usage, key), std::pair(NID_ext_key_usage, extended)}) {
      X509_EXTENSION_free(X509_delete_ext(made.get(), X509_get_ext_by_NID(made.get(), kind, -1)));
      X509_EXTENSION* added = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
      EXPECT_EQ(X509_add_ext(made.get(), added, -1), 1);
      X509_EXTENSION_free(added);
    }
    EXPECT_NE(X509_sign(made.get(), authority.get(), EVP_sha256()), 0);
    const tls::Bio text(BIO_new(BIO_s_mem()));
    EXPECT_EQ(PEM_write_bio_X509(text.get(), made.get()), 1);
    return tls::TextOf(text.get());
  }

  mega::testing::TempDir dir_;
  mega::testing::TestPki pki_;
};

TEST_F(LoadTest, WhatWasIssuedIsBelieved) {
  const auto loaded = tls::Load(FilesOf(*pki_.Node("n1")), kNode1, absl::Now());
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ((*loaded)->name, kNode1);
  EXPECT_GT((*loaded)->not_after, absl::Now() + absl::Minutes(50));
  const auto user = tls::Load(FilesOf(*pki_.User("ada@example.org")), kAnyUser, absl::Now());
  ASSERT_TRUE(user.ok()) << user.status().ToString();
  EXPECT_EQ((*user)->name.name, "ada@example.org");
}

TEST_F(LoadTest, WithoutFilesItIsPlainText) {
  const auto loaded = tls::Load({}, kNode1, absl::Now());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(*loaded, nullptr);
}

TEST_F(LoadTest, AllThreeFilesGoTogether) {
  tls::Files files = FilesOf(*pki_.Node("n1"));
  files.key.clear();
  EXPECT_THAT(WhyNot(files), HasSubstr("--tls-key missing"));
  files.authority.clear();
  EXPECT_THAT(WhyNot(files), HasSubstr("--tls-ca and --tls-key missing"));
}

TEST_F(LoadTest, NamesTheFileThatCannotBeUsed) {
  const tls::Files good = FilesOf(*pki_.Node("n1"));
  for (std::string tls::Files::*which :
       {&tls::Files::authority, &tls::Files::certificate, &tls::Files::key}) {
    for (const std::string& text :
         {std::string(), std::string("no PEM"), std::string(3 << 20, 'x'),
          std::string("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
          std::string("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")}) {
      tls::Files files = good;
      files.*which = Write("damaged", text);
      EXPECT_THAT(WhyNot(files), HasSubstr("damaged")) << text.substr(0, 80);
    }
    tls::Files files = good;
    files.*which = dir_ / "absent";
    EXPECT_THAT(WhyNot(files), HasSubstr("absent"));
    files.*which = dir_ / "pipe";
    mkfifo((files.*which).c_str(), 0600);  // would block whoever opens it
    EXPECT_THAT(WhyNot(files), HasSubstr("pipe"));
  }
}

TEST_F(LoadTest, AKeyOfAnotherCertificateIsRefused) {
  tls::Files files = FilesOf(*pki_.Node("n1"));
  files.key = Write("other", pki_.Node("n1")->key);
  EXPECT_THAT(WhyNot(files), HasSubstr("is not the key of the certificate"));
}

TEST_F(LoadTest, ACertificateOfAnotherAuthorityIsRefused) {
  tls::Files files = FilesOf(*pki_.Node("n1"));
  files.authority = Write("other", mega::testing::TestPki().authority().certificate);
  EXPECT_THAT(WhyNot(files), HasSubstr("is not of the authority"));
}

TEST_F(LoadTest, ACertificateHasItsTime) {
  const tls::Files files = FilesOf(*pki_.Node("n1"));
  EXPECT_THAT(WhyNot(files, kNode1, absl::Now() + absl::Hours(2)), HasSubstr("is valid from"));
  EXPECT_THAT(WhyNot(files, kNode1, absl::Now() - absl::Hours(2)), HasSubstr("is valid from"));
}

TEST_F(LoadTest, TheAuthorityHasItsTimeToo) {
  const cli::Validity past{absl::Now() - absl::Hours(2), absl::Now() - absl::Hours(1)};
  const auto authority = MakeAuthority(past);
  ASSERT_TRUE(authority.ok());
  const auto made = Issue(*authority, kNode1, {}, mega::testing::TestPki::Valid());
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(WhyNot({Write("old", authority->certificate), Write("cert", made->certificate),
                      Write("key", made->key)}),
              ::testing::AllOf(HasSubstr("/old: is valid from"), HasSubstr("megactl pki init")));
}

TEST_F(LoadTest, ItIsBelievedNoLongerThanItsAuthority) {
  const absl::Time end = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 600);
  const auto authority = MakeAuthority({absl::Now() - absl::Minutes(5), end});
  ASSERT_TRUE(authority.ok());
  const auto made = Issue(*authority, kNode1, {}, mega::testing::TestPki::Valid());
  ASSERT_TRUE(made.ok());
  const auto loaded = tls::Load({Write("ca", authority->certificate),
                                 Write("cert", made->certificate), Write("key", made->key)},
                                kNode1, absl::Now());
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ((*loaded)->not_after, end);
}

TEST_F(LoadTest, ACertificateMustBeOfUseToItsPeer) {
  struct Case {
    PeerName peer;
    const char* key_usage;
    const char* extended;
    const char* why;  // null: it is of use
  };
  const PeerName coordinator{PeerName::Kind::kCoordinator, ""};
  for (const Case& one : std::vector<Case>{
           {kNode1, "digitalSignature", "serverAuth,clientAuth", nullptr},
           {kNode1, "digitalSignature", "clientAuth", "a server's (serverAuth)"},
           {kNode1, "digitalSignature", "serverAuth", "a client's (clientAuth)"},
           {kNode1, "keyCertSign", "serverAuth,clientAuth", "its key usages"},
           {coordinator, "digitalSignature", "clientAuth", "a server's (serverAuth)"},
           {{PeerName::Kind::kUser, "ada"}, "digitalSignature", "serverAuth", "a client's"}}) {
    tls::Files files = FilesOf(*pki_.Make(one.peer));
    files.certificate = Write("other", WithUsages(mega::testing::ReadFile(files.certificate),
                                                  one.key_usage, one.extended));
    const std::string said = WhyNot(files, one.peer);
    EXPECT_THAT(said, HasSubstr(one.why != nullptr ? one.why : "it was loaded")) << one.extended;
    if (one.why != nullptr) EXPECT_THAT(said, HasSubstr("/other: "));
  }
}

TEST_F(LoadTest, AKeyIsItsOwnersAlone) {
  const tls::Files files = FilesOf(*pki_.Node("n1"));
  for (const mode_t mode : {0600, 0400, 0640, 0440}) {
    ASSERT_EQ(chmod(files.key.c_str(), mode), 0);
    EXPECT_EQ(WhyNot(files), "it was loaded") << mode;
  }
  for (const mode_t mode : {0644, 0604, 0602, 0601, 0660, 0666}) {
    ASSERT_EQ(chmod(files.key.c_str(), mode), 0);
    EXPECT_THAT(WhyNot(files), HasSubstr("chmod 600 " + files.key)) << mode;
  }
}

TEST_F(LoadTest, EverybodyHasTheirOwn) {
  const tls::Files files = FilesOf(*pki_.Node("n2"));
  EXPECT_THAT(WhyNot(files), HasSubstr("is of node 'n2', and node 'n1' is needed here"));
  EXPECT_THAT(WhyNot(files, kAnyUser), HasSubstr("user 'NAME' is needed here"));
  // The authority's own certificate makes others, and speaks for nobody.
  const tls::Files authority{Write("a", pki_.authority().certificate),
                             Write("b", pki_.authority().certificate),
                             Write("c", pki_.authority().key)};
  EXPECT_THAT(WhyNot(authority), HasSubstr("names no part of a cluster"));
}

TEST(Issue, RefusesHostsThatAreNone) {
  const mega::testing::TestPki pki;
  for (const char* host : {"", "a b", "a,DNS:b", "-", "1.2.3.4.5:7"}) {
    const auto made = Issue(pki.authority(), {PeerName::Kind::kCoordinator, ""}, {host},
                            mega::testing::TestPki::Valid());
    ASSERT_FALSE(made.ok()) << host;
    EXPECT_THAT(made.status().message(), HasSubstr("neither the name of a host"));
  }
}

TEST(Issue, RefusesNamesThatNobodyWouldBelieve) {
  const mega::testing::TestPki pki;
  const std::string part(60, 'a');
  for (const PeerName& peer :
       {PeerName{PeerName::Kind::kNode, part + "." + part + "." + part + "." + part + "a"},
        PeerName{PeerName::Kind::kNode, "a,DNS:b"}, PeerName{PeerName::Kind::kUser, ""},
        PeerName{PeerName::Kind::kCoordinator, "x"}}) {
    const auto made = Issue(pki.authority(), peer, {}, mega::testing::TestPki::Valid());
    ASSERT_FALSE(made.ok()) << peer.name;
    EXPECT_THAT(made.status().message(), HasSubstr("cannot stand in a certificate"));
  }
}

TEST(Issue, NeedsAnAuthority) {
  const mega::testing::TestPki pki;
  const cli::Credential mixed{pki.authority().certificate,
                              mega::testing::TestPki().authority().key};
  for (const cli::Credential& authority : {mixed, cli::Credential{"", ""}}) {
    EXPECT_FALSE(Issue(authority, kNode1, {}, mega::testing::TestPki::Valid()).ok());
  }
}

TEST(PeerName, IsReadBackFromItsUri) {
  for (const PeerName& peer : {kNode1, PeerName{PeerName::Kind::kUser, "ada@example.org"},
                               PeerName{PeerName::Kind::kCoordinator, ""}}) {
    EXPECT_EQ(tls::ParsePeerUri(tls::ToUri(peer)), peer);
  }
}

TEST(PeerName, OtherUrisNameNobody) {
  for (const char* uri :
       {"", "spiffe://mega/", "spiffe://mega/node/", "spiffe://mega/node/a b",
        "spiffe://mega/node/a/b", "spiffe://mega/coordinator/", "spiffe://mega/user/../x",
        "spiffe://other/node/n1", "https://mega/node/n1", "spiffe://mega/admin/root"}) {
    EXPECT_EQ(tls::ParsePeerUri(uri), std::nullopt) << uri;
  }
}

}  // namespace
}  // namespace mega::cli
