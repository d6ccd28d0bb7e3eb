// megactl describe: the story of one job, for a person.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "base/byte_count.h"
#include "base/clock.h"
#include "cli/commands/goodput_view.h"
#include "cli/commands/plan_view.h"
#include "cli/commands/watch.h"
#include "cli/spec/job_yaml_print.h"
#include "cli/view/json.h"
#include "cli/view/table.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

constexpr int kShownEvents = 15;

struct Options {
  std::string handle;
  bool spec = false;
  bool watch = false;
  Output output = Output::kTable;
};

std::string Times(const v1::Job& job, absl::Time now) {
  std::string text = FormatTime(job.create_time());
  if (job.has_start_time())
    text += fmt::format(", first step {} later",
                        FormatSpan(FromProto(job.start_time()) - FromProto(job.create_time())));
  if (job.has_end_time()) {
    text += fmt::format(", ended {} after it was submitted",
                        FormatSpan(FromProto(job.end_time()) - FromProto(job.create_time())));
  } else {
    text += fmt::format(", {} ago", FormatSpan(now - FromProto(job.create_time())));
  }
  return text;
}

std::string Attempts(const v1::Job& job) {
  Table table({"ATTEMPT", "STATE", "FROM STEP", "LAST STEP", "RANKS", "FAILED RANK", "CAUSE"});
  for (const v1::Attempt& attempt : job.attempts()) {
    // One that ended before its first report stands where it began.
    const int64_t last = std::max(attempt.start_step(), attempt.last_step());
    table.AddRow({fmt::format("{}", attempt.number()), AttemptName(attempt.state()),
                  fmt::format("{}", attempt.start_step()), fmt::format("{}", last),
                  fmt::format("{}", attempt.plan().world_size()),
                  attempt.has_failed_rank() ? fmt::format("{}", attempt.failed_rank()) : "-",
                  Printable(attempt.cause())});
  }
  return table.ToString();
}

std::string Ranks(const v1::Attempt& attempt) {
  Table table({"RANK", "NODE", "DEVICE", "STATE"});
  for (const v1::RankState& rank : attempt.ranks()) {
    std::string state = rank.ready() ? "ready" : "starting";
    if (rank.exited()) state = "exited, " + FormatExit(rank.exit());
    if (rank.lost()) state = "lost with its node";
    table.AddRow({fmt::format("{}", rank.rank()), Printable(rank.node()),
                  fmt::format("{}", rank.device()), state});
  }
  return table.ToString();
}

std::string Checkpoints(const v1::Job& job) {
  Table table({"STEP", "SIZE", "CREATED", "FOLDER"});
  for (const v1::Manifest& manifest : job.checkpoints()) {
    table.AddRow({fmt::format("{}", manifest.step()),
                  FormatBytes(static_cast<double>(manifest.total_bytes())),
                  FormatTime(manifest.create_time()), Printable(manifest.directory())});
  }
  return table.ToString();
}

// What was decided after its failures, and by what; the newest last.
std::string Recoveries(const v1::Job& job) {
  constexpr int kShown = 10;
  Table table({"TIME", "RUNG", "ATTEMPT", "FROM STEP", "LOST STEPS", "NODES", "DECIDED BY"});
  for (int i = std::max(0, job.recoveries_size() - kShown); i < job.recoveries_size(); ++i) {
    const v1::RecoveryRecord& record = job.recoveries(i);
    std::string nodes;
    for (const std::string& node : record.nodes_out()) nodes += "-" + Printable(node) + " ";
    for (const std::string& node : record.nodes_in()) nodes += "+" + Printable(node) + " ";
    table.AddRow({FormatTime(record.time()), Printable(record.rung()),
                  fmt::format("{}", record.attempt()), fmt::format("{}", record.from_step()),
                  fmt::format("{}", record.lost_steps()), nodes.empty() ? "-" : nodes,
                  Printable(record.decided_by())});
  }
  return table.ToString();
}

std::string Budgets(const v1::Job& job) {
  Table table({"BUDGET", "USED", "LIMIT", "LEFT", "WITHIN"});
  for (const v1::RecoveryBudgetUse& use : job.recovery_budgets()) {
    table.AddRow({Printable(use.key()), fmt::format("{}", use.used()),
                  fmt::format("{}", use.limit()),
                  fmt::format("{}", std::max<int64_t>(0, use.limit() - use.used())),
                  use.has_window() ? FormatSpan(FromProto(use.window())) : "in a row"});
  }
  return table.ToString();
}

std::string Events(Client& client, const v1::Job& job) {
  v1::WatchEventsRequest request;
  request.set_name(job.name());
  Stream<v1::JobEvent> stream = client.WatchEvents(request);
  std::vector<v1::JobEvent> events;
  for (v1::JobEvent event; stream.Next(&event);) {
    events.push_back(event);
    if (events.size() > kShownEvents) events.erase(events.begin());
  }
  if (!stream.Finish().ok()) return "";
  Table table({"TIME", "REASON", "MESSAGE"});
  for (const v1::JobEvent& event : events)
    table.AddRow({FormatTime(event.time()), Printable(event.reason()), Printable(event.message())});
  return table.ToString();
}

absl::StatusOr<View> Look(Client& client, const Options& options) {
  const absl::StatusOr<v1::Job> job = client.GetJob(options.handle);
  if (!job.ok()) return job.status();
  View view{.out = "", .note = "", .is_final = IsFinal(job->phase())};
  if (options.output != Output::kTable) {
    const google::protobuf::Message* message = &*job;
    if (options.spec) message = &job->resolved_spec();
    view.out = MessageView(*message, options.output, options.watch);
    return view;
  }
  if (options.spec) {
    view.out = PrintJob(job->metadata(), job->resolved_spec());
    return view;
  }
  std::string out;
  AddLine(out, "Job",
          fmt::format("{} ({})", Printable(job->metadata().name()), Printable(job->uid())));
  AddLine(out, "Namespace", Printable(job->metadata().namespace_()));
  std::string labels;
  for (const auto& [key, value] : job->metadata().labels())
    labels += fmt::format("{}={} ", Printable(key), Printable(value));
  AddLine(out, "Labels", labels);
  std::string phase = PhaseName(job->phase());
  if (!job->reason().empty()) phase += ": " + Printable(job->reason());
  if (job->queue_position() > 0)
    phase += fmt::format(" (place {} in the queue)", job->queue_position());
  AddLine(out, "Phase", phase);
  AddLine(out, "Submitted", Times(*job, absl::Now()));
  if (job->last_step() > 0)
    AddLine(out, "Progress",
            fmt::format("step {}, loss {:.4f}", job->last_step(), job->last_loss()));
  AddLine(out, "Goodput", GoodputLine(*job, absl::Now()));
  AddLine(out, "Restarts", fmt::format("{}", job->restarts()));
  std::string left_out;
  for (const std::string& node : job->excluded_nodes()) left_out += Printable(node) + " ";
  AddLine(out, "Left out", left_out);
  if (!job->attempts().empty()) {
    const v1::Attempt& current = *job->attempts().rbegin();
    out += "\nPlan\n" + PlanText(current.plan());
    out += "\nAttempts\n" + Attempts(*job);
    out += "\nRanks of attempt " + fmt::format("{}\n", current.number()) + Ranks(current);
    for (const v1::RankState& rank : current.ranks()) {
      if (rank.exit().message().empty() || rank.exit().killed_by_worker()) continue;
      out += fmt::format("\nLast words of rank {}: {}\n", rank.rank(),
                         Printable(rank.exit().message()));
      break;
    }
  }
  if (!job->recoveries().empty()) {
    out += "\nRecoveries\n" + Recoveries(*job);
    out += "\nBudgets\n" + Budgets(*job);
  }
  if (!job->checkpoints().empty()) out += "\nCheckpoints\n" + Checkpoints(*job);
  if (const std::string events = Events(client, *job); !events.empty())
    out += "\nEvents\n" + events;
  view.out = std::move(out);
  return view;
}

int Describe(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return Show(options.watch, [&] { return Look(*client, options); });
}

}  // namespace

void AddDescribe(Command program, const Shell& shell) {
  Command command =
      program.AddCommand("describe", "Tell the story of a job: plan, attempts, events",
                         "megactl describe shakespeare");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  AddWatch(command, options->watch);
  command.AddFlag("--spec", options->spec, "Print its job file, with all defaults, instead");
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Describe(shell, *options); });
}

}  // namespace mega::cli
