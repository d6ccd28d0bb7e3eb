#include "cli/commands/interrupt.h"

#include <csignal>
#include <initializer_list>

namespace mega::cli {
namespace {

// What a signal handler may touch.
volatile std::sig_atomic_t g_count = 0;
volatile std::sig_atomic_t g_signal = SIGINT;

}  // namespace

void CountInterrupts() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    g_count = g_count + 1;
    g_signal = signal;
  };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

int InterruptCount() { return g_count; }
int InterruptExitCode() { return 128 + g_signal; }

}  // namespace mega::cli
