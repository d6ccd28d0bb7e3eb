#include "tests/worker/daemon/scripted_coordinator.h"

#include "base/check.h"
#include "base/clock.h"

namespace mega::testing {

void ScriptedCoordinator::Serve() {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(64 << 20);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address(), grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  MEGA_CHECK(server_ != nullptr);
}

void ScriptedCoordinator::Stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void ScriptedCoordinator::SetTtl(absl::Duration ttl) {
  MutexLock lock(mu_);
  ttl_ = ttl;
}
void ScriptedCoordinator::SetAnswering(bool answering) {
  MutexLock lock(mu_);
  answering_ = answering;
}
void ScriptedCoordinator::SetCluster(const std::string& id) {
  MutexLock lock(mu_);
  cluster_ = id;
  next_seq_ = 1;
  unacked_.clear();
}
void ScriptedCoordinator::RejectWith(const std::string& reason, bool fatal) {
  MutexLock lock(mu_);
  reject_ = reason;
  reject_fatal_ = fatal;
}
void ScriptedCoordinator::CutLogs(int after_chunks, int cuts) {
  MutexLock lock(mu_);
  cut_after_ = after_chunks;
  cuts_ = cuts;
}

int64_t ScriptedCoordinator::Order(v1::Command command) {
  MutexLock lock(mu_);
  return OrderNow(std::move(command));
}

void ScriptedCoordinator::OrderTogether(std::vector<v1::Command> commands) {
  MutexLock lock(mu_);
  for (v1::Command& command : commands) OrderNow(std::move(command));
}

int64_t ScriptedCoordinator::OrderNow(v1::Command command) {
  command.set_seq(next_seq_++);
  unacked_[command.seq()] = command;
  if (session_ != nullptr) {
    v1::CoordinatorMessage message;
    *message.mutable_command() = command;
    session_->Write(message);
  }
  return command.seq();
}

void ScriptedCoordinator::SendAgain(const v1::Command& command) {
  MutexLock lock(mu_);
  v1::CoordinatorMessage message;
  *message.mutable_command() = command;
  if (session_ != nullptr) session_->Write(message);
}

void ScriptedCoordinator::StreamLog(const v1::StreamLog& request) {
  v1::Command command;
  *command.mutable_stream_log() = request;
  SendAgain(command);
}

bool ScriptedCoordinator::Await(const std::function<bool(const Heard&)>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  MutexLock lock(mu_);
  while (!condition(heard_)) {
    if (!changed_.WaitUntil(mu_, deadline)) return condition(heard_);
  }
  return true;
}

ScriptedCoordinator::Heard ScriptedCoordinator::heard() {
  MutexLock lock(mu_);
  return heard_;
}

bool ScriptedCoordinator::AwaitReady(size_t count) {
  return Await([&](const Heard& heard) {
    size_t ready = 0;
    for (const v1::WorkerMessage& m : heard.messages) ready += m.has_rank_ready();
    return ready >= count;
  });
}

bool ScriptedCoordinator::AwaitExits(size_t count) {
  return Await([&](const Heard& heard) {
    size_t exits = 0;
    for (const v1::WorkerMessage& m : heard.messages) exits += m.has_rank_exited();
    for (const v1::Hello& hello : heard.hellos) exits += static_cast<size_t>(hello.exited_size());
    return exits >= count;
  });
}

std::vector<v1::RankExited> ScriptedCoordinator::Exits() {
  std::vector<v1::RankExited> exits;
  MutexLock lock(mu_);
  for (const v1::WorkerMessage& m : heard_.messages) {
    if (m.has_rank_exited()) exits.push_back(m.rank_exited());
  }
  for (const v1::Hello& hello : heard_.hellos) {
    for (const v1::RankExited& exited : hello.exited()) exits.push_back(exited);
  }
  return exits;
}

void ScriptedCoordinator::Lease(SessionStream* stream, int64_t seq, const std::string& cluster) {
  if (!answering_) return;
  v1::CoordinatorMessage message;
  message.mutable_lease()->set_heartbeat_seq(seq);
  *message.mutable_lease()->mutable_ttl() = ToProto(ttl_);
  message.mutable_lease()->set_cluster_id(cluster);
  stream->Write(message);
}

grpc::Status ScriptedCoordinator::Session(grpc::ServerContext* context, SessionStream* stream) {
  v1::WorkerMessage message;
  while (stream->Read(&message)) {
    MutexLock lock(mu_);
    if (message.has_hello()) {
      heard_.hellos.push_back(message.hello());
      if (!reject_.empty()) {
        v1::CoordinatorMessage out;
        out.mutable_reject()->set_reason(reject_);
        out.mutable_reject()->set_fatal(reject_fatal_);
        stream->Write(out);
        changed_.NotifyAll();
        return grpc::Status::OK;
      }
      session_ = stream;
      ++heard_.sessions_open;
      Lease(stream, message.hello().heartbeat_seq(), cluster_);
      const bool is_ours = cluster_.empty() || message.hello().cluster_id() == cluster_;
      std::erase_if(unacked_, [&](const auto& entry) {
        return is_ours && entry.first <= message.hello().last_command_seq();
      });
      for (const auto& [seq, command] : unacked_) {
        v1::CoordinatorMessage out;
        *out.mutable_command() = command;
        stream->Write(out);
      }
    } else if (message.has_heartbeat()) {
      ++heard_.heartbeats;
      Lease(stream, message.heartbeat().seq(), "");
    } else {
      if (message.has_command_ack()) unacked_.erase(message.command_ack().seq());
      heard_.messages.push_back(message);
    }
    changed_.NotifyAll();
  }
  MutexLock lock(mu_);
  if (session_ == stream) session_ = nullptr;
  --heard_.sessions_open;
  changed_.NotifyAll();
  return grpc::Status::OK;
}

grpc::Status ScriptedCoordinator::PushSteps(grpc::ServerContext* context,
                                            grpc::ServerReader<v1::StepReport>* reader,
                                            v1::PushStepsResponse* response) {
  v1::StepReport report;
  while (reader->Read(&report)) {
    MutexLock lock(mu_);
    heard_.steps.push_back(report);
    changed_.NotifyAll();
  }
  MutexLock lock(mu_);
  ++heard_.step_streams;
  changed_.NotifyAll();
  return grpc::Status::OK;
}

grpc::Status ScriptedCoordinator::PushLogs(grpc::ServerContext* context,
                                           grpc::ServerReader<v1::LogChunk>* reader,
                                           v1::PushLogsResponse* response) {
  v1::LogChunk chunk;
  std::string id;
  int chunks = 0;
  while (reader->Read(&chunk)) {
    MutexLock lock(mu_);
    id = chunk.stream_id();
    heard_.logs[id].push_back(chunk);
    changed_.NotifyAll();
    if (cuts_ > 0 && ++chunks >= cut_after_) {
      --cuts_;
      break;
    }
  }
  MutexLock lock(mu_);
  ++heard_.log_streams_ended[id];
  changed_.NotifyAll();
  return grpc::Status::OK;
}

}  // namespace mega::testing
