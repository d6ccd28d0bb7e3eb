// The running coordinator: owns the parts, wires them, starts and stops them in the right order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "base/tls/identity.h"
#include "coordinator/core/options.h"
#include "coordinator/state/state_store.h"

namespace mega::service {

struct CoordinatorOptions {
  std::string listen = "127.0.0.1:0";
  std::string metrics_listen = "127.0.0.1:0";     // empty: no metrics
  std::string state_dir;                          // made if absent
  bool accept_lost_state = false;                 // changes that were acknowledged may be missing
  std::shared_ptr<const tls::Identity> identity;  // null: plain text
  std::string access_file;                        // who may do what; empty: users everything
  bool insecure = false;                          // may speak plain text beyond loopback
  bool insecure_metrics = false;                  // /metrics may, whatever the API speaks
  int64_t journal_bytes = 1 << 30;                // 0: no journal
  size_t most_checks_waiting = 1'000;  // calls that validate or plan, and as many that forecast
  absl::Duration hello_deadline = absl::Seconds(10);  // a session without one by then is ended
  core::Options core;
  // The port is open at this address, and the state is yet to be loaded: calls are refused as
  // UNAVAILABLE, health says NOT_SERVING. Within Start, once.
  std::function<void(const std::string& address)> listening;
  // The store can no longer be trusted: the process must end. On some thread, at most once by each
  // of those that write.
  std::function<void(const absl::Status&)> failed;
};

class Coordinator {
 public:
  // Opens the port, loads the state, takes over, and serves when it returns.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(CoordinatorOptions options);
  // The same on a store of the caller's, which outlives it; state_dir then only holds the journal.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(CoordinatorOptions options,
                                                            state::StateStore& store);
  // Stops serving. Jobs go on running; their workers find the next coordinator.
  virtual ~Coordinator() = default;

  // host:port with the real port.
  virtual const std::string& address() const = 0;
  virtual const std::string& metrics_address() const = 0;
};

}  // namespace mega::service
