#include "worker/daemon/daemon.h"

#include <grpcpp/grpcpp.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>

#include "base/check.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/version.h"
#include "worker/daemon/devices.h"
#include "worker/daemon/leftovers.h"

namespace mega::daemon {
namespace {

constexpr absl::Duration kEngineAnswers = absl::Seconds(10);
constexpr absl::Duration kLeftoversDie = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(Options options, const Clock& clock) {
  // The threads of its parts all start in here; a machine that has none left throws.
  try {
    std::unique_ptr<Daemon> daemon(new Daemon(std::move(options), clock));
    MEGA_RETURN_IF_ERROR(daemon->Init());
    return daemon;
  } catch (const std::system_error& refused) {
    return ThreadRefused(refused);
  }
}

// ---- putting together, taking apart

absl::Status Daemon::Init() {
  MEGA_ASSIGN_OR_RETURN(const ListenAddress listen,
                        ParseListenAddress("--listen", options_.listen));
  MEGA_ASSIGN_OR_RETURN(state_dir_, StateDir::Open(options_.state_dir));
  MEGA_ASSIGN_OR_RETURN(devices_, CpuDevices(options_.devices));
  MEGA_ASSIGN_OR_RETURN(const EngineVersion engine,
                        AskEngineVersion(options_.engine, kEngineAnswers));
  MEGA_ASSIGN_OR_RETURN(trainer_, TrainerService::Start(TrainerCallbacks()));
  MEGA_RETURN_IF_ERROR(TakeOverState(engine));
  exporter_ = std::make_unique<Exporter>(options_.node, tls::ExpiryOf(options_.identity.get()));
  if (!options_.metrics_listen.empty()) {
    MEGA_ASSIGN_OR_RETURN(const ListenAddress metrics,
                          ParseListenAddress("--metrics-listen", options_.metrics_listen));
    MEGA_RETURN_IF_ERROR(exporter_->Serve(metrics));
  }
  node_.set_metrics_address(exporter_->address());
  fatal_event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fatal_event_) return ErrnoStatus(errno, "eventfd");
  BuildParts(listen);
  MEGA_RETURN_IF_ERROR(ServeWitness(listen));
  StartProbes();
  session_->Start();
  loop_.Post([this] { removals_->CarryOut(); });
  loop_.Post([this] { Sample(); });
  chores_.Post([this] { ProbeNodeLater(); });
  chores_.Post([this] { ListLogsLater(); });
  return absl::OkStatus();
}

absl::Status Daemon::TakeOverState(const EngineVersion& engine) {
  MEGA_ASSIGN_OR_RETURN(v1::WorkerRecord record, state_dir_->ReadRecord());
  const std::string boot_id = BootId();
  if (!record.socket_directory().empty()) RemoveSocketFolder(record.socket_directory());
  if (!KillLeftovers(record, boot_id, state_dir_->path(), kLeftoversDie)) {
    *stuck_.mutable_ranks() = record.ranks();
    stuck_.set_boot_id(boot_id);
    RetryLeftoversLater();
  }

  node_.set_name(options_.node);
  node_.set_boot_id(boot_id);
  MEGA_ASSIGN_OR_RETURN(const int64_t incarnation,
                        NextIncarnation(record.incarnation(), clock_.WallNow()));
  node_.set_incarnation(incarnation);
  if (record.state_folder_id().empty()) record.set_state_folder_id(DrawStateFolderId());
  node_.set_state_folder_id(record.state_folder_id());
  for (const v1::Device& device : devices_) *node_.add_devices() = device;
  for (const auto& [key, value] : options_.labels) (*node_.mutable_labels())[key] = value;
  node_.set_version(kVersion);
  for (const std::string& library : engine.numeric_libraries) {
    node_.add_numeric_libraries(library);
  }
  record.set_boot_id(boot_id);
  record.set_incarnation(node_.incarnation());
  record.set_socket_directory(trainer_->folder());
  ledger_ = std::make_unique<Ledger>(std::move(record));
  cgroups_ = CgroupParent::Detect(node_.state_folder_id(), node_.incarnation());
  return Annotate(Persist(), "the state folder cannot be written");
}

void Daemon::BuildParts(const ListenAddress& listen) {
  const Coordinator coordinator{options_.coordinator, options_.identity};
  reports_ = std::make_unique<Reports>(coordinator);
  progress_ = std::make_unique<ProgressTable>(
      options_.lease.heartbeat,
      [this](v1::WorkerMessage message) { session_->Send(std::move(message)); });
  log_streams_ = std::make_unique<LogStreams>(coordinator);
  capture_ = std::make_unique<LogCapture>(
      [this](const RankKey& key) { loop_.Post([this, key] { ranks_->OnLogEnd(key); }); });
  supervisor_ = std::make_unique<Supervisor>(
      Supervisor::Options{.cgroups = cgroups_.get()},
      [this](const RankKey& key, ProcessExit exit, bool by_worker) {
        loop_.Post([this, key, exit, by_worker] { ranks_->OnProcessExit(key, exit, by_worker); });
      });
  witness_client_ = std::make_unique<WitnessClient>(
      node_, options_.identity, [this](lease::Input input) { session_->Feed(std::move(input)); });
  session_ = std::make_unique<Session>(coordinator, options_.lease, clock_, SessionCallbacks());
  removals_ = std::make_unique<Removals>(state_dir_->path(), loop_, chores_, Removals::Options{});
  removals_->Load();
  ranks_ = std::make_unique<Ranks>(
      Ranks::Options{.engine = options_.engine,
                     .listen_host = listen.host,
                     .devices = devices_,
                     .log = options_.log},
      Ranks::Parts{
          .loop = loop_,
          .clock = clock_,
          .state_dir = *state_dir_,
          .ledger = *ledger_,
          .supervisor = *supervisor_,
          .trainer = *trainer_,
          .capture = *capture_,
          .reports = *reports_,
          .exporter = *exporter_,
          .send = [this](v1::WorkerMessage message) { session_->Send(std::move(message)); },
          .may_run = [this] { return session_->MayRun(); },
          .connected = [this] { return session_->connected(); },
          .persist = [this] { return Persist(); }});
}

absl::Status Daemon::ServeWitness(const ListenAddress& listen) {
  witness_ = std::make_unique<WitnessService>(
      node_, options_.identity != nullptr,
      WitnessService::Callbacks{.no_session = [this] { return session_->HasNoSession(); },
                                .relay =
                                    [this](v1::RelayedHeartbeat heartbeat) {
                                      return session_->Relay(std::move(heartbeat));
                                    }});
  MEGA_ASSIGN_OR_RETURN(server_, Serve(*witness_, listen, options_.identity.get()));
  node_.set_address(AdvertisedAddress(listen.host, server_->address().port));
  return absl::OkStatus();
}

Daemon::~Daemon() {
  server_.reset();
  // After these, nothing is posted that would still run.
  loop_.Stop();
  chores_.Stop();
  if (witness_client_) witness_client_->Stop();  // it speaks to the session, and is spoken to
  if (probes_) probes_->Stop();                  // likewise
  if (progress_) progress_->Stop();              // engines still speak, and it would pass that on
  session_.reset();
  supervisor_.reset();
  trainer_.reset();
  capture_.reset();
  log_streams_.reset();
  reports_.reset();
}

TrainerService::Callbacks Daemon::TrainerCallbacks() {
  return {.attached =
              [this](const RankKey& key) {
                loop_.Post([this, key] {
                  v1::EngineMessage message;
                  message.mutable_attached();
                  ranks_->OnEngineMessage(key, std::move(message));
                });
              },
          .message =
              [this](const RankKey& key, v1::EngineMessage message) {
                if (message.has_step()) {  // needs no decision; not kept waiting by one
                  v1::StepReport& report = *message.mutable_step();
                  report.set_job_uid(key.job_uid);
                  report.set_attempt(key.attempt);
                  report.set_epoch(key.epoch);
                  report.set_rank(key.rank);
                  exporter_->Report(key, report);
                  reports_->Add(key, std::move(report));
                  return;
                }
                if (message.has_progress()) {  // likewise
                  progress_->Told(key, message.progress(), clock_.BootNow());
                  return;
                }
                loop_.Post([this, key, message = std::move(message)]() mutable {
                  ranks_->OnEngineMessage(key, std::move(message));
                });
              },
          .detached =
              [this](const RankKey& key) {
                progress_->Forget(key);
                loop_.Post([this, key] { ranks_->OnDetached(key); });
              },
          .refused =
              [this](const RankKey& key, absl::Status why) {
                loop_.Post([this, key, why] { ranks_->OnRefused(key, why); });
              }};
}

Session::Callbacks Daemon::SessionCallbacks() {
  return {.introduce =
              [this] {
                ++hello_;
                auto words = ledger_->Introduce(node_, clock_.BootNow());
                progress_->Introduce(words);
                if (!probes_) return words;
                for (v1::Finding& finding : probes_->findings()) {
                  *words.front().mutable_hello()->add_findings() = std::move(finding);
                }
                return words;
              },
          .join = [this](const std::string& cluster_id) { return Join(cluster_id); },
          .command =
              [this](v1::Command command) {
                loop_.Post([this, command = std::move(command), generation = ledger_->generation(),
                            hello = hello_]() mutable {
                  HandleCommand(std::move(command), generation, hello);
                });
              },
          .up = [this] { reports_->Wake(); },
          .down = [this] { witness_->SessionOver(); },
          .push_lease_end = [this](int64_t ns) { trainer_->PushLeaseEnd(ns); },
          .kill_ranks = [this] { supervisor_->KillAll(); },
          .ask_witnesses =
              [this](int64_t round, const v1::WitnessSet& witnesses) {
                witness_client_->Ask(round, witnesses);
              },
          .relayed = [this](const v1::RelayedLease& lease) { witness_->Relayed(lease); },
          .heard = [this](absl::Duration sent) { ledger_->Heard(sent); },
          .fatal =
              [this](absl::Status why) {
                MutexLock lock(mu_);
                fatal_ = std::move(why);
                const uint64_t one = 1;
                MEGA_CHECK_EQ(write(fatal_event_.get(), &one, sizeof(one)),
                              static_cast<ssize_t>(sizeof(one)));
              }};
}

absl::StatusOr<bool> Daemon::Join(const std::string& cluster_id) {
  absl::StatusOr<bool> is_new = ledger_->Join(cluster_id);
  if (is_new.ok() && *is_new) {
    loop_.Post([this] {
      commands_.clear();  // of the cluster before
      (void)Persist();
    });
  }
  return is_new;
}

absl::Status Daemon::Persist() {
  absl::Status status = state_dir_->WriteRecord(ledger_->Record());
  if (!status.ok()) {
    log::Error("worker.json cannot be written: commands wait; free the disk of the state folder",
               {{"commands", std::ssize(commands_)}, {"why", std::string(status.message())}});
  }
  return status;
}

absl::Status Daemon::fatal() const {
  MutexLock lock(mu_);
  return fatal_;
}

// ---- leaving

void Daemon::BeginShutdown(const std::string& reason) {
  loop_.Post([this, reason] {
    ranks_->StopAll(options_.grace, reason);
    CheckDrained();
  });
}

void Daemon::CheckDrained() {
  if (!ranks_->empty()) {
    loop_.PostAfter(absl::Milliseconds(10), [this] { CheckDrained(); });
    return;
  }
  MutexLock lock(mu_);
  drained_ = true;
  changed_.NotifyAll();
}

bool Daemon::WaitDrained(absl::Duration wait) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait);
  MutexLock lock(mu_);
  while (!drained_ && changed_.WaitUntil(mu_, deadline)) {
  }
  return drained_;
}

}  // namespace mega::daemon
