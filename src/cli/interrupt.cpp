#include "cli/interrupt.h"

#include <csignal>

namespace cascade::cli {

namespace {

volatile std::sig_atomic_t asked = 0;

void on_signal(int signal) {
    asked = 1;
    std::signal(signal, SIG_DFL);
}

} // namespace

void stop_on_interrupt() {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
}

bool interrupted() { return asked != 0; }

} // namespace cascade::cli
