// Where the time goes, as the first thread sees it; waiting for the others belongs to the phase that ends with it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace cascade::attend {

enum class Phase : uint8_t {
    indexing,  // covers brought up to date
    preparing, // queries read and rounded
    window,    // exact attention on what isn't covered
    rough,     // rough logits of all that is covered
    opening,   // opened tokens found and gathered
    past,      // opened tokens and speakers attended
};
constexpr int phases = 6;
constexpr std::array<const char *, phases> phase_names = {
    "indexing", "preparing", "window", "rough", "opening", "past"
};

class PhaseTimes {
  public:
    // Time since the last call counts for nothing, or for a phase.
    void start() { last = Clock::now(); }
    void end(Phase phase) {
        const Clock::time_point now = Clock::now();
        spent[static_cast<size_t>(phase)] += now - last;
        last = now;
    }

    double seconds(Phase phase) const {
        return std::chrono::duration<double>(spent[static_cast<size_t>(phase)]).count();
    }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point last;
    std::array<Clock::duration, phases> spent = {};
};

// The thread that measures has one, the others none.
inline void end_phase(PhaseTimes * times, Phase phase) {
    if (times != nullptr) {
        times->end(phase);
    }
}

} // namespace cascade::attend
