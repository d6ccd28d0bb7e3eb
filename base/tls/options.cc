#include "base/tls/options.h"

namespace mega::tls {
namespace {

// An empty name, such as that of a variable that is not set, would be no TLS.
void AddFile(Command command, const char* flag, std::string& path, const char* help) {
  command.AddOption(flag, path, help).TypeName("FILE").Check([flag](const std::string& text) {
    return text.empty() ? fmt::format("{} is empty; give a file, or leave it out", flag) : "";
  });
}

}  // namespace

void AddOptions(Command command, Options& options) {
  AddFile(command, "--tls-ca", options.files.authority,
          "Certificate of the authority that made everybody's (megactl pki init)");
  AddFile(command, "--tls-cert", options.files.certificate, "Certificate that says who this is");
  AddFile(command, "--tls-key", options.files.key, "Its private key");
  command.AddFlag("--insecure", options.insecure,
                  "Plain text beyond loopback: only on a trusted network");
}

void AddMetricsOption(Command command, Options& options) {
  command.AddFlag("--insecure-metrics", options.insecure_metrics,
                  "/metrics beyond loopback, where it is plain text even with TLS");
}

absl::Status CheckOneAsked(const Options& options) {
  if (!options.insecure || !options.files.any()) return absl::OkStatus();
  return InvalidArgument(
      "--insecure asks for plain text, and --tls-ca, --tls-cert and --tls-key for TLS; leave out "
      "one of them (for /metrics, which has no TLS, there is --insecure-metrics)");
}

}  // namespace mega::tls
