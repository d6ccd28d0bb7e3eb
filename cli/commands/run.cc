// megactl run: one job on this machine, from job file to sample. Starts a coordinator and workers
// of its own, submits, follows, and takes everything down again.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/standard_output.h"
#include "base/utf8.h"
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"
#include "cli/commands/interrupt.h"
#include "cli/commands/job_feed.h"
#include "cli/commands/missing_files.h"
#include "cli/commands/run_view.h"
#include "cli/commands/sample.h"
#include "cli/local/local_cluster.h"
#include "cli/view/shell_word.h"
#include "cli/view/words.h"
#include "coordinator/planner/spec/spec.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(8);
constexpr absl::Duration kCancelPatience = absl::Seconds(5);
constexpr absl::Duration kLook = absl::Seconds(1);
constexpr size_t kShownStderr = 4096;

struct Options {
  std::string file;
  std::vector<std::string> overrides;
  int64_t devices = 0;
  int64_t workers = 1;
  std::string run_dir;
  std::string steps_out;
  bool keep = false;
  bool no_sample = false;
  bool verbose = false;
};

// One run, stage by stage. An exit code other than kExitOk ends it early.
class Runner {
 public:
  Runner(const Shell& shell, const Options& options)
      : shell_(shell), options_(options), start_(absl::Now()) {}

  int Run() {
    CountInterrupts();
    int code = Prepare();
    if (code == kExitOk) code = StartAndSubmit();
    if (code == kExitOk) code = FollowJob();
    if (code == kExitOk && IsFinal(job_.phase())) code = Finish();
    if (code == kExitOk && options_.keep) KeepServing();
    if (cluster_ != nullptr)
      cluster_->Stop(InterruptCount() > 1 ? absl::ZeroDuration() : kStopGrace);
    if (InterruptCount() > 0 && !finished_) return InterruptExitCode();
    return code;
  }

 private:
  void Mark(const char* what) const {
    if (options_.verbose)
      std::fprintf(stderr, "%8.3f s  %s\n", absl::ToDoubleSeconds(absl::Now() - start_), what);
  }

  int Prepare() {
    loaded_ = LoadJob(options_.file, options_.overrides, shell_.name_space, "nothing was started");
    if (loaded_.exit_code != kExitOk) return loaded_.exit_code;
    if (const std::vector<Problem> missing = MissingFiles(loaded_.job, loaded_.source);
        !missing.empty())
      return FailProblems(missing, "nothing was started");
    resolved_ = spec::ApplyDefaults(loaded_.job.spec);
    Mark("job file read");
    if (const absl::Status status = ChooseDevices(); !status.ok()) return Fail(status);
    absl::StatusOr<RunView> view = RunView::Open(options_.steps_out, shell_.color);
    if (!view.ok()) return Fail(view.status());
    view_.emplace(*std::move(view));
    if (const absl::Status status = MakeRunFolder(); !status.ok()) return Fail(status);
    if (!loaded_.job.spec.checkpoint().has_directory())
      loaded_.job.spec.mutable_checkpoint()->set_directory(folder_ + "/checkpoints");
    return kExitOk;
  }

  // As many as the job needs, else one for each core.
  absl::Status ChooseDevices() {
    const int64_t ranks = resolved_.parallelism().data_parallel_size();
    const int64_t each = (ranks + options_.workers - 1) / options_.workers;
    devices_ = options_.devices;
    if (devices_ == 0) devices_ = resolved_.resources().devices_per_node();
    if (devices_ == 0) devices_ = each;
    if (devices_ == 0) {
      devices_ = std::max<int64_t>(1, std::thread::hardware_concurrency() / options_.workers);
    }
    if (each > kMostDevicesOfWorker) {
      const int64_t workers = (ranks + kMostDevicesOfWorker - 1) / kMostDevicesOfWorker;
      return InvalidArgument(
          "parallelism.data_parallel_size is {} but a worker has at most {} devices; give "
          "--workers {}, and resources.nodes.desired {}",
          ranks, kMostDevicesOfWorker, workers, workers);
    }
    if (ranks > devices_ * options_.workers) {
      return InvalidArgument(
          "parallelism.data_parallel_size is {} but there are {} workers with {} devices; give "
          "--devices {}",
          ranks, options_.workers, devices_, each);
    }
    const int64_t nodes = resolved_.resources().nodes().desired();
    if (nodes > options_.workers) {
      return InvalidArgument(
          "resources.nodes.desired is {} but there are {} workers; give --workers {}", nodes,
          options_.workers, nodes);
    }
    return absl::OkStatus();
  }

  absl::Status MakeRunFolder() {
    std::error_code error;
    folder_ = options_.run_dir;
    if (folder_.empty()) {
      // Made to differ from that of another run in the same second.
      folder_ = fmt::format("mega-runs/{}-{}-{:04x}", loaded_.job.metadata.name(),
                            absl::FormatTime("%Y%m%d-%H%M%S", start_, absl::LocalTimeZone()),
                            std::random_device()() & 0xFFFF);
    }
    folder_ = std::filesystem::absolute(folder_, error).lexically_normal().string();
    if (!IsUtf8(folder_))
      return InvalidArgument("run folder {} is not UTF-8; give --run-dir", folder_);
    std::filesystem::create_directories(folder_, error);
    if (error) return ErrnoStatus(error.value(), "run folder " + folder_);
    if (std::filesystem::exists(folder_ + "/coordinator", error))
      return absl::AlreadyExistsError("run folder " + folder_ +
                                      " holds another run; give a new one");
    return absl::OkStatus();
  }

  int StartAndSubmit() {
    view_->State("starting the coordinator");
    LocalClusterOptions cluster{
        .folder = folder_, .workers = options_.workers, .devices = devices_, .interrupted = [] {
          return InterruptCount() > 0;
        }};
    absl::StatusOr<std::string> coordinator = ProgramBeside("mega-coordinator");
    if (!coordinator.ok()) return Fail(coordinator.status());
    absl::StatusOr<std::string> worker = ProgramBeside("mega-worker");
    if (!worker.ok()) return Fail(worker.status());
    cluster.coordinator_program = *std::move(coordinator);
    cluster.worker_program = *std::move(worker);
    absl::StatusOr<std::unique_ptr<LocalCluster>> started = LocalCluster::Start(std::move(cluster));
    view_->Clear();
    if (!started.ok()) return Fail(started.status());
    cluster_ = *std::move(started);
    Mark("coordinator serves, workers started");

    absl::StatusOr<Client> client =
        Client::Connect({.address = cluster_->address(), .source = "megactl run"});
    if (!client.ok()) return Fail(client.status());
    client_.emplace(*std::move(client));
    v1::SubmitJobRequest request;
    std::random_device random;
    request.set_request_id(fmt::format("run-{:08x}{:08x}", random(), random()));
    *request.mutable_metadata() = loaded_.job.metadata;
    *request.mutable_spec() = loaded_.job.spec;
    const absl::StatusOr<v1::Job> job = client_->SubmitJob(request);
    if (!job.ok()) return FailRefused(job.status(), loaded_, "nothing was trained");
    job_ = *job;
    Mark("job submitted");
    view_->State("waiting for ranks");
    return kExitOk;
  }

  // Until the job is in a final phase, or a person or a broken cluster ends it.
  int FollowJob() {
    JobFeed feed(*client_, job_.name());
    absl::Time next_look = absl::Now() + kLook;
    while (true) {
      Show(feed.Take(absl::Milliseconds(50)));
      if (InterruptCount() > 0) {
        CancelJob(feed, "interrupted: cancelling the job; once more to kill it");
        return InterruptExitCode();
      }
      if (StandardOutputFailed() || !view_->steps_out().ok()) {
        CancelJob(feed, "cancelling the job: what it says cannot be written");
        return view_->steps_out().ok() ? kExitOutputFailed : Fail(view_->steps_out());
      }
      const absl::StatusOr<std::vector<std::string>> told = cluster_->Supervise();
      if (!told.ok()) {
        view_->Clear();
        return Fail(told.status());
      }
      for (const std::string& text : *told) view_->Note(text);
      const bool drained = feed.Drained();
      if (!drained && absl::Now() < next_look) continue;
      next_look = absl::Now() + kLook;
      if (!RefreshJob()) continue;
      if (IsFinal(job_.phase())) {
        Drain(feed);
        Mark("job ended");
        return kExitOk;
      }
      if (drained) absl::SleepFor(absl::Milliseconds(10));  // ended, but not yet final here
    }
  }

  bool RefreshJob() {
    absl::StatusOr<v1::Job> job = client_->GetJob(job_.name());
    if (!job.ok()) return false;  // a coordinator that is being started again
    job_ = *std::move(job);
    if (view_->steps() == 0 && !job_.reason().empty()) view_->State(job_.reason());
    return true;
  }

  // The last steps and events, which may arrive after the final phase.
  void Drain(JobFeed& feed) {
    const absl::Time deadline = absl::Now() + absl::Seconds(2);
    while (!feed.Drained() && absl::Now() < deadline) Show(feed.Take(absl::Milliseconds(20)));
  }

  void Show(const JobFeed::Batch& batch) {
    for (const v1::JobEvent& event : batch.events) view_->Event(event);
    for (const v1::StepReport& report : batch.steps) {
      if (view_->steps() == 0) {
        first_step_ = absl::Now();
        Mark("first step");
      }
      view_->Step(report);
    }
  }

  void CancelJob(JobFeed& feed, const std::string& why) {
    view_->Note(why);
    client_->CancelJob(job_.name()).IgnoreError();
    const absl::Time deadline = absl::Now() + kCancelPatience;
    while (InterruptCount() <= 1 && absl::Now() < deadline) {
      Show(feed.Take(absl::Milliseconds(20)));
      if (feed.Drained() || (RefreshJob() && IsFinal(job_.phase()))) break;
    }
    view_->Clear();
  }

  int Finish() {
    finished_ = true;
    view_->Clear();
    if (!options_.keep) cluster_->Stop(kStopGrace);
    Mark("cluster stopped");
    if (job_.phase() != v1::JOB_PHASE_SUCCEEDED) return TellFailure();
    if (PrintStdout("\n" + view_->Chart())) TellSummary();
    return view_->steps_out().ok() ? kExitOk : Fail(view_->steps_out());
  }

  void TellSummary() {
    const v1::StepReport& last = view_->last();
    std::string text =
        fmt::format("\njob {} succeeded: {} steps, loss {:.4f}", Printable(job_.metadata().name()),
                    job_.last_step(), job_.last_loss());
    if (last.has_validation_loss())
      text += fmt::format(", validation loss {:.4f}", last.validation_loss());
    text +=
        fmt::format("\nwall time {}, first step after {:.2f} s\n", FormatSpan(absl::Now() - start_),
                    absl::ToDoubleSeconds(first_step_ - start_));
    PrintStdout(text);
    const std::string checkpoint =
        job_.checkpoints().empty() ? "" : job_.checkpoints().rbegin()->directory();
    if (!checkpoint.empty()) TellSample(checkpoint);
    std::string next = fmt::format("\nrun folder  {}\n", folder_);
    if (!checkpoint.empty()) {
      next += fmt::format("checkpoint  {}\n", checkpoint);
      next += fmt::format(
          "\nnext\n  megactl generate --model {} --prompt 'To be' -n 300\n"
          "  megactl run {} --set {} --set training.steps={}\n",
          ShellWord(checkpoint), ShellWord(options_.file),
          ShellWord("checkpoint.load=" + checkpoint), 2 * job_.last_step());
    }
    PrintStdout(next);
  }

  void TellSample(const std::string& checkpoint) {
    if (options_.no_sample) return;
    const absl::StatusOr<std::string> sample = GenerateSample(
        checkpoint, PromptFromData(resolved_.data()), folder_, [] { return InterruptCount() > 0; });
    if (sample.ok()) {
      PrintStdout(fmt::format("\n{}sample{}\n{}\n", view_->palette().bold, view_->palette().reset,
                              *sample));
    } else {
      PrintStdout(fmt::format("\nno sample: {}\n", std::string(sample.status().message())));
    }
    Mark("sample made");
  }

  int TellFailure() {
    std::string text = fmt::format("megactl: job {} is {}: {}\n", Printable(job_.metadata().name()),
                                   PhaseName(job_.phase()), Printable(job_.reason()));
    if (!job_.attempts().empty()) {
      const v1::Attempt& attempt = *job_.attempts().rbegin();
      for (const v1::RankState& rank : attempt.ranks()) {
        if (!attempt.has_failed_rank() || rank.rank() != attempt.failed_rank()) continue;
        text += fmt::format("rank {} on {} ended with {}\n", rank.rank(), Printable(rank.node()),
                            FormatExit(rank.exit()));
        std::string tail = rank.exit().stderr_tail();
        if (tail.size() > kShownStderr) tail = tail.substr(tail.size() - kShownStderr);
        if (tail.empty()) tail = rank.exit().message();
        text += Printable(tail);
        if (!tail.empty() && tail.back() != '\n') text += '\n';
      }
    }
    text += fmt::format("logs: {}, {}/jobs/{}\n", cluster_->log_folder(),
                        cluster_->worker_folder(0), Printable(job_.uid()));
    std::fputs(text.c_str(), stderr);
    return kExitFailure;
  }

  // --keep: the cluster goes on until Ctrl-C.
  void KeepServing() {
    const bool is_told =
        PrintStdout(fmt::format("\nthe cluster goes on at {}: MEGACTL_COORDINATOR={} megactl get\n"
                                "Ctrl-C ends it\n",
                                cluster_->address(), cluster_->address()));
    while (is_told && InterruptCount() == 0 && cluster_->Supervise().ok())
      absl::SleepFor(absl::Milliseconds(50));
  }

  const Shell& shell_;
  const Options& options_;
  const absl::Time start_;
  absl::Time first_step_ = start_;
  LoadedJob loaded_;
  v1::JobSpec resolved_;
  int64_t devices_ = 1;
  std::string folder_;
  std::optional<RunView> view_;
  std::unique_ptr<LocalCluster> cluster_;
  std::optional<Client> client_;
  v1::Job job_;
  bool finished_ = false;
};

}  // namespace

void AddRun(Command program, const Shell& shell) {
  Command command =
      program.AddCommand("run", "Train one job on this machine, from start to sample",
                         "megactl run deploy/examples/shakespeare.yaml --set training.steps=100");
  command.Footer("Ctrl-C cancels the job and ends every process it started; twice kills them.");
  auto options = std::make_shared<Options>();
  command.AddOption("file", options->file, "Job file, - for standard input").Required();
  AddOverrides(command, options->overrides);
  command
      .AddOption("--devices", options->devices,
                 "CPU devices of each worker (default: what the job needs, else the cores)")
      .InRange(1, kMostDevicesOfWorker)
      .TypeName("N");
  command.AddOption("--workers", options->workers, "Workers to start (default 1)")
      .InRange(1, 256)
      .TypeName("N");
  command
      .AddOption("--run-dir", options->run_dir,
                 "Folder of everything the run makes (default mega-runs/NAME-TIME-RANDOM)")
      .TypeName("FOLDER");
  command.AddOption("--steps-out", options->steps_out, "Write each step as a JSON line here")
      .TypeName("FILE");
  command.AddFlag("--keep", options->keep, "Leave the cluster up until Ctrl-C");
  command.AddFlag("--no-sample", options->no_sample, "Generate no text at the end");
  command.AddFlag("-v,--verbose", options->verbose, "Time of each stage, on standard error");
  command.OnRun([&shell, options] { return Runner(shell, *options).Run(); });
}

}  // namespace mega::cli
