#include "base/tls/options.h"

namespace mega::tls {

void AddOptions(Command command, Files& files) {
  command
      .AddOption("--tls-ca", files.authority,
                 "Certificate of the authority that made everybody's (megactl pki init)")
      .TypeName("FILE");
  command.AddOption("--tls-cert", files.certificate, "Certificate that says who this is")
      .TypeName("FILE");
  command.AddOption("--tls-key", files.key, "Its private key").TypeName("FILE");
}

}  // namespace mega::tls
