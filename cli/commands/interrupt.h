// Ctrl-C (SIGINT), SIGTERM and the end of the terminal (SIGHUP), counted instead of obeyed.
#pragma once

namespace mega::cli {

// From now on they are counted.
void CountInterrupts();
int InterruptCount();
// Exit code by convention: 128 + the newest signal.
int InterruptExitCode();

}  // namespace mega::cli
