// Ctrl-C: the first one asks long work to stop and leave what is done, a second one ends the program.
#pragma once

namespace cascade::cli {

void stop_on_interrupt();
bool interrupted();

} // namespace cascade::cli
