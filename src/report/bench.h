// What `cascade bench` measured: the bare engine and ours at the same work, turn by turn.
#pragma once

#include "analysis/paired.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cascade::report {

// One side's place in the engine, as llama-bench would name it.
struct BenchSide {
    std::string backends;
    std::string cpu_info;
};

// The same for all tests of a run.
struct BenchInfo {
    std::string version; // ours
    std::string build_commit;
    int build_number = 0;
    BenchSide bare;
    BenchSide ours;
    std::string gpu_info;
    std::string model_filename;
    std::string model_type;
    uint64_t model_size = 0;
    uint64_t model_n_params = 0;
    int n_batch = 0;
    int n_ubatch = 0;
    int n_threads = 0;
    std::string type_k;
    std::string type_v;
    std::string load_mode;
    std::string mode;
    std::string text; // the file whose tokens were computed; empty: random tokens
    int rounds = 0;
    double level = 0.0; // asked of the intervals
};

// The bare engine with the setting of -fa that came out slower in the first phase, and there the better one too.
struct SlowerSetting {
    int flash_attn = 0;
    double ts = 0.0;
    double better_ts = 0.0;
    double ratio = 1.0; // of its speed to the better one's, paired by rounds
};

struct BenchTest {
    int n_prompt = 0;
    int n_gen = 0;
    int n_depth = 0;
    int flash_attn = 0; // of bare and ours alike
    std::string test_time;
    std::vector<double> bare; // seconds of each round
    std::vector<double> control;
    std::vector<double> ours;
    std::optional<SlowerSetting> slower;
    std::map<std::string, double> parts; // seconds of ours by part, as the plugin counts them, over all rounds
    int64_t failures = 0;                // of ours: the engine computed them instead
    double weight_bytes_per_token = 0.0;
    double kv_bytes_per_token = 0.0;

    int tokens() const { return n_prompt + n_gen; }
    std::string name() const;                                              // pp512, tg32 @ d4096, pp512+tg32
    std::vector<double> speeds(const std::vector<double> & seconds) const; // tokens per second of each round
    double median_speed(const std::vector<double> & seconds) const;        // 0 without rounds
    analysis::PairedRatio ratio(double level) const;                       // ours over bare
    analysis::PairedRatio control_ratio(double level) const;               // bare over bare
    std::string warning(double level) const;                               // empty: the difference stands out
};

struct Bench {
    BenchInfo info;
    std::vector<BenchTest> tests;
    size_t wanted = 0; // tests asked for
    bool complete = false;
};

// Words for a level of confidence: "99 %", "99.9 %".
std::string percent(double level);

} // namespace cascade::report
