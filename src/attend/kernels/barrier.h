// Where threads that are known to run at the same time wait for each other.
#pragma once

#include <atomic>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace cascade::attend {

class Barrier {
  public:
    // Returns once `parts` threads have called it. What they wrote before is visible to all afterwards.
    void wait(int parts) {
        const unsigned seen = phase.load(std::memory_order_acquire);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) {
            arrived.store(0, std::memory_order_relaxed);
            phase.store(seen + 1, std::memory_order_release);
            return;
        }
        for (int turns = 0; phase.load(std::memory_order_acquire) == seen; turns++) {
            turns < patience ? pause() : std::this_thread::yield();
        }
    }

  private:
    static constexpr int patience = 1024; // then a thread without a core may be the one that is waited for

    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        _mm_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    alignas(64) std::atomic<int> arrived{ 0 };
    alignas(64) std::atomic<unsigned> phase{ 0 };
};

} // namespace cascade::attend
