// A few threads that share loops. One owner at a time: `run` is not to be called from two threads, nor from a task.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cascade {

class Team {
  public:
    // The caller is one of the `threads`; at least 1. Throws std::system_error where threads can't be had.
    explicit Team(int threads);
    ~Team();
    Team(const Team &) = delete;
    Team & operator=(const Team &) = delete;

    int size() const { return static_cast<int>(workers.size()) + 1; }

    // Calls task(0) … task(tasks - 1), in any order, each once, and returns when all are done. Where one throws, those
    // not begun are left out, and the first exception is thrown on.
    void run(int64_t tasks, const std::function<void(int64_t)> & task);

  private:
    void stop();
    void work();
    void take_tasks();

    std::vector<std::thread> workers;
    const std::function<void(int64_t)> * task = nullptr;
    int64_t tasks = 0;
    std::atomic<int64_t> next{ 0 };
    std::atomic<uint32_t> round{ 0 };  // counts calls of run
    std::atomic<uint32_t> active{ 0 }; // workers that haven't finished this round
    std::atomic<bool> stopping{ false };
    std::mutex failing;
    std::exception_ptr failure; // of this round
};

} // namespace cascade
