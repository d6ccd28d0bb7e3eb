// Commands that show how things stand now, once or again and again.
#pragma once

#include <functional>
#include <string>

#include "cli/commands/command.h"
#include "google/protobuf/message.h"

namespace mega::cli {

struct View {
  std::string out;
  std::string note;       // for standard error: nothing is there, and what would bring it
  bool is_final = false;  // it will not change any more
};

// -w: every two seconds until it is final.
void AddWatch(Command command, bool& watch);

// Looks once; or, watching, again and again: drawn in place on a terminal, elsewhere printed when
// it is another. A coordinator that is away for a while is waited for. Returns the exit code.
int Show(bool watch, const std::function<absl::StatusOr<View>()>& look);

// The message as -o json and -o yaml show it; when it is watched, one line or document of many.
std::string MessageView(const google::protobuf::Message& message, Output output, bool watch);

}  // namespace mega::cli
