#include "coordinator/service/coordinator.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/grpc_server/grpc_server.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "base/message_size.h"
#include "base/metrics/metrics_server.h"
#include "base/tls/credentials.h"
#include "base/tls/expiry_notice.h"
#include "base/tls/options.h"
#include "coordinator/planner/planner.h"
#include "coordinator/service/access_file.h"
#include "coordinator/service/exporter.h"
#include "coordinator/service/random_id.h"
#include "coordinator/service/services.h"
#include "coordinator/state/rocksdb/rocksdb_store.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"

namespace mega::service {
namespace {

constexpr size_t kMostPlansWaiting = 10'000;
constexpr size_t kMostReadsWaiting = 10'000;
// 64 of the largest messages.
constexpr size_t kMostUnparsedBytes = size_t{4} << 30;
// A worker has one, and there are 65,536 of them at most: as many again for users.
constexpr int64_t kMostConnections = 131'072;
// A connection carries one worker, or many readers behind one proxy.
constexpr int kMostCallsPerConnection = 4096;
// How often streams look at their deadlines.
constexpr std::chrono::milliseconds kStreamTick{200};
constexpr int kStreamTicksPerSnapshot = 5;
constexpr std::chrono::milliseconds kCallsEndWithin{500};

// Reads everything the core asked about; a decision of the planner is an input like any other.
v1::CoreEvent PlanFor(const v1::AskPlan& ask) {
  v1::CoreEvent event;
  v1::CorePlanMade& made = *event.mutable_plan_made();
  made.set_job_uid(ask.job_uid());
  made.set_revision(ask.revision());
  planner::ClusterView cluster;
  cluster.nodes.assign(ask.nodes().begin(), ask.nodes().end());
  cluster.revision = ask.revision();
  absl::StatusOr<v1::Plan> plan = planner::MakePlan(ask.resolved_spec(), cluster);
  if (plan.ok()) {
    *made.mutable_plan() = *std::move(plan);
  } else {
    made.set_error(std::string(plan.status().message()));
    made.set_permanent(plan.status().code() == absl::StatusCode::kInvalidArgument);
  }
  return event;
}

class CoordinatorImpl final : public Coordinator {
 public:
  explicit CoordinatorImpl(CoordinatorOptions options) : options_(std::move(options)) {}

  ~CoordinatorImpl() override {
    if (streams_.joinable()) {
      streams_.request_stop();
      streams_.join();
    }
    // The loop first: calls that wait for it are answered, so that the server can end them.
    if (server_) server_->server().GetHealthCheckService()->SetServingStatus(false);
    if (loop_) loop_->Stop();
    sessions_.CloseAll();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kCallsEndWithin);
    plans_.reset();
    checks_.reset();
    forecasts_.reset();
    history_.reset();
    metrics_.reset();
  }

  absl::Status Start(state::StateStore* store) {
    MEGA_ASSIGN_OR_RETURN(const ListenAddress listen,
                          ParseListenAddress("--listen", options_.listen));
    MEGA_RETURN_IF_ERROR(CheckPlainTextAllowed(
        "--listen", listen, options_.insecure || options_.identity != nullptr, tls::kRemedy));
    MEGA_RETURN_IF_ERROR(MetricsListen().status());
    MEGA_RETURN_IF_ERROR(OpenAccess());
    // First of all: a port in use is found before the state is touched, and who calls while a large
    // state is loaded is told so.
    MEGA_RETURN_IF_ERROR(Serve(listen));
    if (options_.listening) options_.listening(address_);
    if (store == nullptr) {
      MEGA_ASSIGN_OR_RETURN(own_store_, OpenStore());
      store = own_store_.get();
    }
    store_ = store;
    MEGA_ASSIGN_OR_RETURN(core::State state, store_->Load());
    state.options = options_.core;
    MEGA_RETURN_IF_ERROR(RestoreSteps(state));
    reads_.Load(state);
    exporter_ = std::make_shared<Exporter>(
        reads_, clock_,
        Exporter::Sources{
            .sessions = [this] { return static_cast<int64_t>(sessions_.size()); },
            .dropped_reports = [this] { return recorder_ ? recorder_->dropped() : 0; },
            .certificate_expiry = tls::ExpiryOf(options_.identity.get())});
    MEGA_RETURN_IF_ERROR(StartMetrics());
    StartLoop(std::move(state));
    streams_ = std::jthread([this](std::stop_token stop) { ServeStreams(stop); });
    shell_ = std::make_unique<const Shell>(Shell{*loop_, reads_, sessions_, logs_, *recorder_,
                                                 *checks_, *forecasts_, *history_, *store_, clock_,
                                                 options_.hello_deadline});
    user_gate_.Open(*shell_);
    worker_gate_.Open(*shell_);
    server_->server().GetHealthCheckService()->SetServingStatus(true);
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  const std::string& metrics_address() const override { return metrics_address_; }

 private:
  absl::Status OpenAccess() {
    if (options_.access_file.empty()) return absl::OkStatus();
    if (options_.identity == nullptr) {
      return InvalidArgument(
          "--access gives roles to users, and over plain text nobody is known; give --tls-ca, "
          "--tls-cert and --tls-key, or leave out --access");
    }
    MEGA_ASSIGN_OR_RETURN(access_, AccessFile::Open(options_.access_file));
    user_gate_.Restrict(*access_);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<state::StateStore>> OpenStore() {
    if (options_.state_dir.empty()) {
      return InvalidArgument("--state-dir is empty; give the folder that holds the state");
    }
    std::error_code error;
    std::filesystem::create_directories(options_.state_dir, error);
    if (error) {
      return FailedPrecondition("state folder {} cannot be made: {}; choose another --state-dir",
                                options_.state_dir, error.message());
    }
    return state::RocksDbStore::Open(options_.state_dir + "/db", nullptr,
                                     options_.accept_lost_state);
  }

  // How far running attempts have come is not among what the core keeps; the history has it.
  absl::Status RestoreSteps(core::State& state) const {
    for (const auto& [uid, job] : state.durable.jobs) {
      const v1::Attempt* attempt = core::LiveAttempt(job);
      if (attempt == nullptr) continue;
      MEGA_ASSIGN_OR_RETURN(
          std::optional<v1::StepReport> newest,
          store_->NewestStep(uid, attempt->epoch(), std::max<int64_t>(attempt->start_step(), 0)));
      if (newest) *state.live.jobs[uid].mutable_newest() = *std::move(newest);
    }
    return absl::OkStatus();
  }

  // Nothing: no metrics are asked for.
  absl::StatusOr<std::optional<ListenAddress>> MetricsListen() const {
    if (options_.metrics_listen.empty()) return std::nullopt;
    MEGA_ASSIGN_OR_RETURN(const ListenAddress listen,
                          ParseListenAddress("--metrics-listen", options_.metrics_listen));
    MEGA_RETURN_IF_ERROR(CheckPlainTextAllowed("--metrics-listen", listen,
                                               options_.insecure || options_.insecure_metrics,
                                               tls::kMetricsRemedy));
    return listen;
  }

  absl::Status StartMetrics() {
    MEGA_ASSIGN_OR_RETURN(const std::optional<ListenAddress> listen, MetricsListen());
    if (!listen.has_value()) return absl::OkStatus();
    MEGA_ASSIGN_OR_RETURN(metrics_, MetricsServer::Start(*listen, exporter_));
    metrics_address_ = metrics_->address().ToString();
    return absl::OkStatus();
  }

  void StartLoop(core::State state) {
    if (options_.journal_bytes > 0) {
      journal_ = std::make_unique<Journal>(options_.state_dir + "/journal", options_.journal_bytes);
    }
    recorder_ = std::make_unique<StepRecorder>(
        *store_,
        [this](const v1::StepReport& report) {
          exporter_->AddStep(report);
          reads_.PublishStep(report);
        },
        [this](const absl::Status& status) {
          if (options_.failed) options_.failed(status);
        });
    checks_ = std::make_unique<WorkThread>(options_.most_checks_waiting);
    forecasts_ = std::make_unique<WorkThread>(options_.most_checks_waiting);
    history_ = std::make_unique<WorkThread>(kMostReadsWaiting);
    plans_ = std::make_unique<WorkThread>(kMostPlansWaiting);
    Loop::Outlets outlets;
    outlets.send = [this](v1::SendToWorker send) {
      sessions_.Send(send.session(), std::move(*send.mutable_message()));
    };
    outlets.close_session = [this](const v1::CloseSession& close) {
      sessions_.Close(close.session());
    };
    outlets.ask_plan = [this](v1::AskPlan ask) {
      // A full queue drops the question; the core asks again.
      plans_->Post([this, ask = std::move(ask)] { loop_->Put(PlanFor(ask)); });
    };
    outlets.record_step = [this](const v1::StepReport& report) { recorder_->Add(report); };
    outlets.told_event = [this](const v1::JobEvent& event) { exporter_->AddEvent(event); };
    outlets.failed = [this](absl::Status status) {
      if (options_.failed) options_.failed(status);
    };
    outlets.measured_commit = [this](double seconds) { exporter_->AddCommit(seconds); };
    outlets.measured_lag = [this](double seconds) { exporter_->AddLag(seconds); };
    loop_ = std::make_unique<Loop>(std::move(state), *store_, reads_, journal_.get(), clock_,
                                   Loop::Options{.new_cluster_id = NewUid()}, std::move(outlets));
  }

  absl::Status Serve(const ListenAddress& listen) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMostMessageBytes);
    builder.SetMaxSendMessageSize(kMostMessageBytes);
    // Peers may ping every 5 s, calls or not; we look after sockets whose peer is gone. Liveness is
    // the heartbeat's business.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.RegisterService(&jobs_);
    builder.RegisterService(&cluster_);
    builder.RegisterService(&workers_);
    MEGA_ASSIGN_OR_RETURN(
        server_, GrpcServer::Start(builder, listen, tls::ServerCredentials(options_.identity.get()),
                                   {.connections = kMostConnections,
                                    .calls_per_connection = kMostCallsPerConnection,
                                    .unparsed_bytes = kMostUnparsedBytes}));
    server_->server().GetHealthCheckService()->SetServingStatus(false);  // until the gate opens
    address_ = server_->address().ToString();
    return absl::OkStatus();
  }

  // Streams are served here, so that neither the loop nor the disk's threads wait for a reader.
  void ServeStreams(std::stop_token stop) {
    tls::ExpiryNotice expiry(options_.identity);
    for (int ticks = 0; !stop.stop_requested(); ++ticks) {
      reads_.WakeChanged(std::chrono::steady_clock::now() + kStreamTick);
      reads_.WakeAll();
      logs_.Tick();
      if (ticks % kStreamTicksPerSnapshot != 0) continue;
      exporter_->Refresh();
      expiry.Look(clock_.WallNow());
    }
  }

  const CoordinatorOptions options_;
  const SystemClock clock_;
  std::unique_ptr<state::StateStore> own_store_;
  state::StateStore* store_ = nullptr;
  ReadModel reads_;
  SessionTable sessions_;
  LogRouter logs_{clock_};
  std::shared_ptr<Exporter> exporter_;
  std::unique_ptr<MetricsServer> metrics_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<StepRecorder> recorder_;
  std::unique_ptr<WorkThread> checks_;
  std::unique_ptr<WorkThread> forecasts_;
  std::unique_ptr<WorkThread> history_;
  std::unique_ptr<WorkThread> plans_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<const Shell> shell_;
  std::unique_ptr<AccessFile> access_;  // null: who is let in may do everything
  Gate user_gate_{tls::PeerName::Kind::kUser, options_.identity != nullptr};
  Gate worker_gate_{tls::PeerName::Kind::kNode, options_.identity != nullptr};
  JobServiceImpl jobs_{user_gate_};
  ClusterServiceImpl cluster_{user_gate_};
  WorkerServiceImpl workers_{worker_gate_};
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
  std::string metrics_address_;
  std::jthread streams_;
};

absl::StatusOr<std::unique_ptr<Coordinator>> Started(CoordinatorOptions options,
                                                     state::StateStore* store) {
  auto coordinator = std::make_unique<CoordinatorImpl>(std::move(options));
  MEGA_RETURN_IF_ERROR(coordinator->Start(store));
  return coordinator;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(CoordinatorOptions options) {
  return Started(std::move(options), nullptr);
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(CoordinatorOptions options,
                                                                state::StateStore& store) {
  return Started(std::move(options), &store);
}

}  // namespace mega::service
