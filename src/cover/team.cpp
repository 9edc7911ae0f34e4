#include "cascade/team.h"

#include <algorithm>

namespace cascade {

namespace {

// A loop's parts follow each other within microseconds, so waking a sleeper would cost more than looking a while.
template <typename Ready>
void look_a_while(const Ready & ready) {
    constexpr int looks = 20000;
    for (int i = 1; i < looks && !ready(); i++) {
        if (i % 100 == 0) {
            std::this_thread::yield();
        }
    }
}

} // namespace

Team::Team(int threads) {
    workers.reserve(static_cast<size_t>(std::max(threads, 1) - 1));
    try {
        for (int i = 1; i < threads; i++) {
            workers.emplace_back([this] { work(); });
        }
    } catch (...) {
        stop();
        throw;
    }
}

Team::~Team() { stop(); }

void Team::stop() {
    stopping = true;
    round++;
    round.notify_all();
    for (auto & worker : workers) {
        worker.join();
    }
}

void Team::run(int64_t count, const std::function<void(int64_t)> & loop_body) {
    if (workers.empty() || count <= 1) {
        for (int64_t i = 0; i < count; i++) {
            loop_body(i);
        }
        return;
    }
    failure = nullptr;
    task = &loop_body;
    tasks = count;
    next = 0;
    active = static_cast<uint32_t>(workers.size());
    round++;
    round.notify_all();
    take_tasks();
    look_a_while([this] { return active == 0; });
    for (uint32_t left = active; left != 0; left = active) {
        active.wait(left);
    }
    if (failure != nullptr) {
        std::rethrow_exception(failure);
    }
}

void Team::take_tasks() {
    try {
        for (int64_t i = next++; i < tasks; i = next++) {
            (*task)(i);
        }
    } catch (...) {
        next = tasks;
        const std::lock_guard lock(failing);
        if (failure == nullptr) {
            failure = std::current_exception();
        }
    }
}

void Team::work() {
    uint32_t seen = 0;
    for (;;) {
        look_a_while([&] { return round != seen; });
        round.wait(seen);
        seen++;
        if (stopping) {
            return;
        }
        take_tasks();
        if (--active == 0) {
            active.notify_one();
        }
    }
}

} // namespace cascade
