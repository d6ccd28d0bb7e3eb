// megactl pki: an authority for a cluster of one's own, and certificates of it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/atomic_file.h"
#include "base/dns_name.h"
#include "base/listen_address.h"
#include "base/read_file.h"
#include "base/tls/identity.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "cli/commands/command.h"
#include "cli/pki/authority.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kSkew = absl::Minutes(5);  // clocks of the cluster may be so much behind
constexpr int64_t kMostFileBytes = 1 << 20;
constexpr int64_t kAuthorityDays = 3650;

struct Options {
  std::string folder;
  std::string node;
  std::string user;
  std::vector<std::string> hosts;
  int64_t days = 365;
};

Validity ValidFor(int64_t days) {
  const absl::Time now = absl::Now();
  return {now - kSkew, now + absl::Hours(24 * days)};
}

// A new file that only its owner may read; never one over another.
absl::Status WriteNew(const std::string& path, const std::string& text, mode_t mode) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file && errno == EEXIST) {
    return absl::AlreadyExistsError(
        fmt::format("{} is there already; remove it if nobody needs it any more", path));
  }
  if (!file) return ErrnoStatus(errno, path);
  if (const int error = WriteAll(file.get(), text); error != 0) return ErrnoStatus(error, path);
  if (fsync(file.get()) != 0) return ErrnoStatus(errno, path);
  return absl::OkStatus();
}

// Both files or neither.
absl::Status Write(const std::string& folder, const std::string& name,
                   const Credential& credential) {
  const std::string key = folder + "/" + name + ".key";
  MEGA_RETURN_IF_ERROR(WriteNew(key, credential.key, 0600));
  if (absl::Status status = WriteNew(folder + "/" + name + ".crt", credential.certificate, 0644);
      !status.ok()) {
    unlink(key.c_str());
    return status;
  }
  return SyncFolder(folder);
}

// Takes the place of `folder` when all is in it, and leaves nothing otherwise: half an authority
// would be in the way of the next try.
class NewFolder {
 public:
  static absl::StatusOr<NewFolder> Make(const std::string& folder) {
    std::error_code error;
    const std::filesystem::path given = std::filesystem::absolute(folder, error).lexically_normal();
    const std::filesystem::path path = given.has_filename() ? given : given.parent_path();
    if (std::filesystem::exists(path, error) && !std::filesystem::is_empty(path, error)) {
      return absl::AlreadyExistsError(
          fmt::format("{} is there already and not empty; give another folder, or remove it if "
                      "nobody needs it any more",
                      folder));
    }
    std::string made = path.string() + ".new-XXXXXX";
    if (mkdtemp(made.data()) == nullptr) return ErrnoStatus(errno, made);
    return NewFolder(path.string(), std::move(made));
  }
  NewFolder(NewFolder&& other) noexcept
      : final_(std::move(other.final_)), path_(std::exchange(other.path_, "")) {}
  NewFolder& operator=(NewFolder&&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  absl::Status Finish() {
    if (rename(path_.c_str(), final_.c_str()) != 0) return ErrnoStatus(errno, final_);
    path_.clear();
    return SyncFolder(std::filesystem::path(final_).parent_path().string());
  }

 private:
  NewFolder(std::string final_path, std::string path)
      : final_(std::move(final_path)), path_(std::move(path)) {}
  std::string final_;
  std::string path_;
};

absl::StatusOr<Credential> ReadAuthority(const std::string& folder) {
  Credential authority;
  auto certificate = ReadRegularFile(folder + "/authority.crt", kMostFileBytes);
  auto key = ReadRegularFile(folder + "/authority.key", kMostFileBytes);
  if (absl::IsNotFound(certificate.status()) || absl::IsNotFound(key.status())) {
    return NotFound("{} holds no authority.crt and authority.key; megactl pki init {} makes them",
                    folder, folder);
  }
  MEGA_ASSIGN_OR_RETURN(authority.certificate, std::move(certificate));
  MEGA_ASSIGN_OR_RETURN(authority.key, std::move(key));
  MEGA_RETURN_IF_ERROR(tls::CheckKeyIsPrivate(folder + "/authority.key"));
  return authority;
}

std::string FileName(const tls::PeerName& peer) {
  switch (peer.kind) {
    case tls::PeerName::Kind::kCoordinator:
      return "coordinator";
    case tls::PeerName::Kind::kNode:
      return "node-" + peer.name;
    case tls::PeerName::Kind::kUser:
      return "user-" + peer.name;
  }
  return "";
}

absl::Status IssueInto(const std::string& folder, const Credential& authority,
                       const tls::PeerName& peer, const std::vector<std::string>& hosts,
                       int64_t days) {
  MEGA_ASSIGN_OR_RETURN(const Credential made, Issue(authority, peer, hosts, ValidFor(days)));
  return Write(folder, FileName(peer), made);
}

std::string Line(const std::string& folder, const tls::PeerName& peer) {
  return fmt::format("{0}/{1}.crt, {0}/{1}.key: {2}\n", folder, FileName(peer),
                     tls::Describe(peer));
}

// How this machine is reached, and what else was said.
std::vector<std::string> HostsOfCoordinator(const std::vector<std::string>& said) {
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  if (IsHostName(HostName())) hosts.push_back(HostName());
  for (const std::string& host : said) {
    if (std::ranges::count(hosts, host) == 0) hosts.push_back(host);
  }
  return hosts;
}

absl::Status Init(const Options& options) {
  const std::string& folder = options.folder;
  const tls::PeerName coordinator{tls::PeerName::Kind::kCoordinator, ""};
  const std::string name = options.user.empty() ? "admin" : options.user;
  const tls::PeerName user{tls::PeerName::Kind::kUser, name};
  MEGA_ASSIGN_OR_RETURN(const Credential authority, MakeAuthority(ValidFor(kAuthorityDays)));
  MEGA_ASSIGN_OR_RETURN(NewFolder made, NewFolder::Make(folder));
  MEGA_RETURN_IF_ERROR(Write(made.path(), "authority", authority));
  MEGA_RETURN_IF_ERROR(IssueInto(made.path(), authority, coordinator,
                                 HostsOfCoordinator(options.hosts), options.days));
  MEGA_RETURN_IF_ERROR(IssueInto(made.path(), authority, user, {}, options.days));
  MEGA_RETURN_IF_ERROR(made.Finish());
  PrintStdout(fmt::format("{0}/authority.crt, {0}/authority.key: the authority; the key makes "
                          "anybody's certificate, so keep it here\n",
                          folder) +
              Line(folder, coordinator) + Line(folder, user));
  PrintStdout(fmt::format(
      "\nmegactl pki issue {0} --node NAME makes that of a worker. Then everybody has three "
      "files:\n"
      "  mega-coordinator … --tls-ca {0}/authority.crt --tls-cert {0}/coordinator.crt --tls-key "
      "{0}/coordinator.key\n"
      "  mega-worker …      --tls-ca {0}/authority.crt --tls-cert {0}/node-NAME.crt --tls-key "
      "{0}/node-NAME.key\n"
      "  megactl            --tls-ca {0}/authority.crt --tls-cert {0}/user-{1}.crt --tls-key "
      "{0}/user-{1}.key …\n",
      folder, name));
  return absl::OkStatus();
}

absl::Status IssueOne(const Options& options) {
  const int kinds = (options.node.empty() ? 0 : 1) + (options.user.empty() ? 0 : 1) +
                    (options.hosts.empty() ? 0 : 1);
  if (kinds != 1) {
    return InvalidArgument(
        "say whose certificate it is, one at a time: --node NAME, --user NAME, or --host HOST for "
        "a coordinator");
  }
  MEGA_ASSIGN_OR_RETURN(const Credential authority, ReadAuthority(options.folder));
  tls::PeerName peer{tls::PeerName::Kind::kCoordinator, ""};
  if (!options.node.empty()) peer = {tls::PeerName::Kind::kNode, options.node};
  if (!options.user.empty()) peer = {tls::PeerName::Kind::kUser, options.user};
  const bool is_coordinator = peer.kind == tls::PeerName::Kind::kCoordinator;
  MEGA_RETURN_IF_ERROR(IssueInto(options.folder, authority, peer,
                                 is_coordinator ? HostsOfCoordinator(options.hosts) : options.hosts,
                                 options.days));
  PrintStdout(Line(options.folder, peer));
  return absl::OkStatus();
}

int Run(const absl::Status& status) { return status.ok() ? kExitOk : Fail(status); }

Option AddNode(Command command, std::string& node) {
  return command.AddOption("--node", node, "Of the worker of this node (mega-worker --node)")
      .TypeName("NAME")
      .Check([](const std::string& name) -> std::string {
        if (IsHostName(name)) return "";
        return fmt::format("'{}' is not the name of a node, which is {}", name, kHostNameRule);
      });
}

Option AddUser(Command command, std::string& user, const char* help) {
  return command.AddOption("--user", user, help)
      .TypeName("NAME")
      .Check([](const std::string& name) -> std::string {
        if (tls::IsUserName(name)) return "";
        return fmt::format("'{}' is not the name of a user, which is {}", name, tls::kUserNameRule);
      });
}

void AddDays(Command command, int64_t& days) {
  command.AddOption("--days", days, "How long the certificate is valid")
      .InRange(1, kAuthorityDays)
      .ShowDefault();
}

}  // namespace

void AddPki(Command program) {
  Command command =
      program.AddCommand("pki", "Make the certificates of a cluster", "megactl pki init pki");
  command.RequireCommand();
  auto options = std::make_shared<Options>();

  Command init =
      command.AddCommand("init", "Make an authority, the coordinator's certificate and a user's",
                         "megactl pki init pki --host coordinator.example.org");
  init.AddOption("DIR", options->folder, "Folder for all of it, made if there is none").Required();
  init.AddOption("--host", options->hosts,
                 "Name or address of the coordinator, beside localhost and this machine's name")
      .TypeName("HOST")
      .OneWordEach();
  AddUser(init, options->user, "The first user (default: admin)");
  AddDays(init, options->days);
  init.OnRun([options] { return Run(Init(*options)); });

  Command issue =
      command.AddCommand("issue", "Make one more certificate", "megactl pki issue pki --node n1");
  issue.AddOption("DIR", options->folder, "Folder that megactl pki init made").Required();
  AddNode(issue, options->node);
  AddUser(issue, options->user, "Of a user");
  issue
      .AddOption("--host", options->hosts,
                 "Of a coordinator that is reached by this name or address, beside localhost and "
                 "this machine's name")
      .TypeName("HOST")
      .OneWordEach();
  AddDays(issue, options->days);
  issue.OnRun([options] { return Run(IssueOne(*options)); });
}

}  // namespace mega::cli
