// megactl queue: who is next, and why each waits.
#include <memory>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "cli/commands/watch.h"
#include "cli/view/json.h"
#include "cli/view/table.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  bool no_headers = false;
  bool watch = false;
  Output output = Output::kTable;
};

// "in 12m", "now"; blank when nobody can say.
std::string StartText(const v1::QueueEntry& entry, absl::Time now) {
  if (!entry.has_estimated_start_time()) return "-";
  const absl::Duration left = FromProto(entry.estimated_start_time()) - now;
  return left <= absl::Seconds(1) ? "now" : "in " + FormatSpan(left);
}

std::string QueueText(const v1::ListQueueResponse& queue, bool with_header) {
  Table table({"#", "NAME", "NAMESPACE", "PRIORITY", "DEVICES", "WAITING", "START", "REASON"});
  const absl::Time now = absl::Now();
  for (const v1::QueueEntry& entry : queue.entries()) {
    table.AddRow({fmt::format("{}", entry.position()), Printable(entry.metadata().name()),
                  Printable(entry.metadata().namespace_()), fmt::format("{}", entry.priority()),
                  fmt::format("{}", entry.devices()),
                  FormatAge(entry.queue_time(), entry.has_queue_time(), now), StartText(entry, now),
                  Printable(entry.reason())});
  }
  return table.ToString(with_header);
}

absl::StatusOr<View> Look(Client& client, const Options& options) {
  const std::string& name_space = client.target().name_space;
  MEGA_ASSIGN_OR_RETURN(const v1::ListQueueResponse queue,
                        client.ListQueue("namespaces/" + (name_space.empty() ? "-" : name_space)));
  View view;
  switch (options.output) {
    case Output::kJson:
    case Output::kYaml:
      view.out = MessageView(queue, options.output, options.watch);
      break;
    case Output::kName:
      for (const v1::QueueEntry& entry : queue.entries())
        view.out += Printable(entry.metadata().name()) + "\n";
      break;
    default:
      if (queue.entries().empty()) {
        view.note = "no job waits";
        break;
      }
      view.out = QueueText(queue, !options.no_headers);
  }
  return view;
}

int Queue(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return Show(options.watch, [&] { return Look(*client, options); });
}

}  // namespace

void AddQueue(Command program, const Shell& shell) {
  Command command = program.AddCommand("queue", "List the jobs that wait for devices, next first",
                                       "megactl queue -o json");
  auto options = std::make_shared<Options>();
  AddWatch(command, options->watch);
  command.AddFlag("--no-headers", options->no_headers, "Rows alone");
  AddOutput(command, options->output,
            {Output::kTable, Output::kJson, Output::kYaml, Output::kName});
  command.OnRun([&shell, options] { return Queue(shell, *options); });
}

}  // namespace mega::cli
