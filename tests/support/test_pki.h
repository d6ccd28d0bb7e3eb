// An authority for one test, and identities of it that are ready for use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/tls/identity.h"
#include "cli/pki/authority.h"
#include "gtest/gtest.h"

namespace mega::testing {

class TestPki {
 public:
  TestPki() {
    auto made = cli::MakeAuthority(Valid());
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (made.ok()) authority_ = *std::move(made);
  }

  std::shared_ptr<const tls::Identity> Make(const tls::PeerName& peer,
                                            const std::vector<std::string>& hosts = {}) const {
    const auto made = cli::Issue(authority_, peer, hosts, Valid());
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) return nullptr;
    return std::make_shared<const tls::Identity>(
        tls::Identity{authority_.certificate, made->certificate, made->key, peer, Valid().until});
  }
  std::shared_ptr<const tls::Identity> Coordinator() const {
    return Make({tls::PeerName::Kind::kCoordinator, ""}, {"localhost", "127.0.0.1"});
  }
  std::shared_ptr<const tls::Identity> Node(const std::string& name) const {
    return Make({tls::PeerName::Kind::kNode, name});
  }
  std::shared_ptr<const tls::Identity> User(const std::string& name) const {
    return Make({tls::PeerName::Kind::kUser, name});
  }

  const cli::Credential& authority() const { return authority_; }
  static cli::Validity Valid() {
    return {absl::Now() - absl::Minutes(5), absl::Now() + absl::Hours(1)};
  }

 private:
  cli::Credential authority_;
};

}  // namespace mega::testing
