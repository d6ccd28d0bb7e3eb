#include "cli/commands/watch.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/time/clock.h"
#include "base/standard_output.h"
#include "cli/commands/follow.h"
#include "cli/view/json.h"
#include "cli/view/terminal.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(2);

int TerminalRows() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row : 24;
}

// Over what stood there, line by line so that nothing flickers; what does not fit is left out.
std::string InPlace(const std::string& text) {
  std::string frame = "\x1b[H";
  int rows = TerminalRows() - 1;
  for (size_t begin = 0; begin < text.size() && rows > 0; --rows) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    frame += text.substr(begin, end - begin) + "\x1b[K\n";
    begin = end + 1;
  }
  return frame + "\x1b[J";
}

void PrintNote(const std::string& note) {
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
}

}  // namespace

void AddWatch(Command command, bool& watch) {
  command.AddFlag("-w,--watch", watch,
                  "Show it again every two seconds; JSON, a line each, YAML, a document each");
}

int Show(bool watch, const std::function<absl::StatusOr<View>()>& look) {
  const bool is_terminal = IsTerminal(STDOUT_FILENO);
  std::string shown;
  bool has_shown = false;
  for (Pause pause;;) {
    const absl::StatusOr<View> view = look();
    if (!view.ok()) {
      // One that never answered is a wrong address.
      const bool heals =
          absl::IsUnavailable(view.status()) || absl::IsDeadlineExceeded(view.status());
      if (!watch || !has_shown || !heals || !pause.Wait()) return Fail(view.status());
      continue;
    }
    pause.Reset();
    const std::string all = view->out + view->note;
    if (!watch || !is_terminal) {
      if (!has_shown || all != shown) {
        PrintNote(view->note);
        PrintStdout(view->out);
      }
    } else {
      PrintStdout(InPlace(view->note.empty() ? all : all + "\n"));
    }
    shown = all;
    has_shown = true;
    if (!watch || view->is_final || StandardOutputFailed()) return kExitOk;
    absl::SleepFor(kBetweenLooks);
  }
}

std::string MessageView(const google::protobuf::Message& message, Output output, bool watch) {
  if (output == Output::kYaml) return watch ? ToYamlDocument(message) : ToYaml(message);
  return watch ? ToJsonLine(message) + "\n" : ToJson(message);
}

}  // namespace mega::cli
