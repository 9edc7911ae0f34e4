#include "report/bench_report.h"

#include "report/bench_rows.h"
#include "report/table.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace cascade::report {

namespace {

using analysis::PairedRatio;
using nlohmann::ordered_json;

constexpr double microseconds = 1e6;

ordered_json number_or_null(double value) { return std::isnan(value) ? ordered_json(nullptr) : ordered_json(value); }

ordered_json interval(const PairedRatio & ratio) {
    return ordered_json::array({ number_or_null(ratio.low), number_or_null(ratio.high) });
}

// By part, for each token that ours computed in the rounds.
std::map<std::string, double> microseconds_per_token(const BenchTest & test) {
    std::map<std::string, double> parts = test.parts;
    for (auto & [name, value] : parts) {
        value *= microseconds / (static_cast<double>(test.ours.size()) * test.tokens());
    }
    return parts;
}

ordered_json test_json(const BenchInfo & info, const BenchTest & test) {
    const PairedRatio ratio = test.ratio(info.level);
    const PairedRatio control = test.control_ratio(info.level);
    const std::string warning = test.warning(info.level);
    ordered_json result = bench_row(info, test, true);
    result.erase("ratio_low");
    result.erase("ratio_high");
    result["test"] = test.name();
    result["rounds"] = ratio.rounds;
    result["bare_ts"] = test.median_speed(test.bare);
    result["ours_ts"] = test.median_speed(test.ours);
    result["ratio"] = number_or_null(ratio.ratio);
    result["ratio_interval"] = interval(ratio);
    result["interval_level"] = ratio.level;
    result["control_ts"] = test.median_speed(test.control);
    result["control_ratio"] = number_or_null(control.ratio);
    result["control_interval"] = interval(control);
    result["warning"] = warning.empty() ? ordered_json(nullptr) : ordered_json(warning);
    result["slower_setting"] = nullptr;
    if (test.slower) {
        result["slower_setting"] = { { "flash_attn", test.slower->flash_attn },
                                     { "bare_ts", test.slower->ts },
                                     { "better_bare_ts", test.slower->better_ts },
                                     { "ratio", test.slower->ratio } };
    }
    result["microseconds_per_token"] = microseconds_per_token(test);
    result["failures"] = test.failures;
    result["weight_bytes_per_token"] = test.weight_bytes_per_token;
    result["kv_bytes_per_token"] = test.kv_bytes_per_token;
    result["bare"] = bench_row(info, test, false);
    return result;
}

std::string size_text(uint64_t bytes) {
    constexpr double mebi = 1024.0 * 1024.0;
    const double size = static_cast<double>(bytes) / mebi;
    return size < 1024.0 ? fmt::format("{:.2f} MiB", size) : fmt::format("{:.2f} GiB", size / 1024.0);
}

std::string touched_text(double bytes) {
    constexpr double kibi = 1024.0;
    return bytes < kibi * kibi ? fmt::format("{:.2f} KiB", bytes / kibi) : size_text(static_cast<uint64_t>(bytes));
}

std::string params_text(uint64_t params) {
    const auto count = static_cast<double>(params);
    return params < 1'000'000'000 ? fmt::format("{:.2f} M", count / 1e6) : fmt::format("{:.2f} B", count / 1e9);
}

std::string range(const PairedRatio & ratio) {
    return std::isnan(ratio.low) ? "-" : fmt::format("{:.3f} .. {:.3f}", ratio.low, ratio.high);
}

// The least sure of all tests; they differ only where a run was stopped.
double level_reached(const Bench & bench) {
    double level = bench.tests.empty() ? bench.info.level : 1.0;
    for (const BenchTest & test : bench.tests) {
        level = std::min(level, test.ratio(bench.info.level).level);
    }
    return level;
}

std::string speeds_table(const Bench & bench) {
    const BenchInfo & info = bench.info;
    Table table({ "model", "size", "params", "backend", "threads", "fa", "test", "bare t/s", "ours t/s", "ratio",
                  level_reached(bench) > 0.0 ? percent(level_reached(bench)) + " interval" : "interval",
                  "bare / bare" });
    for (const BenchTest & test : bench.tests) {
        const PairedRatio ratio = test.ratio(info.level);
        table.add({ info.model_type, size_text(info.model_size), params_text(info.model_n_params),
                    info.ours.backends + " " + info.mode, fmt::format("{}", info.n_threads),
                    fmt::format("{}", test.flash_attn), test.name(),
                    fmt::format("{:.2f}", test.median_speed(test.bare)),
                    fmt::format("{:.2f}", test.median_speed(test.ours)), fmt::format("{:.3f}", ratio.ratio),
                    range(ratio), range(test.control_ratio(info.level)) });
    }
    return table.text();
}

std::string parts_table(const Bench & bench) {
    Table table({ "test", "part of ours", "us / token", "share" });
    bool any = false;
    for (const BenchTest & test : bench.tests) {
        const double whole = std::accumulate(test.ours.begin(), test.ours.end(), 0.0);
        for (const auto & [name, each] : microseconds_per_token(test)) {
            table.add({ test.name(), name, fmt::format("{:.1f}", each),
                        fmt::format("{:.1f} %", 100.0 * test.parts.at(name) / whole) });
            any = true;
        }
    }
    return any ? "\n" + table.text() : "";
}

std::string bytes_table(const Bench & bench) {
    Table table({ "test", "weights / token", "KV / token" });
    for (const BenchTest & test : bench.tests) {
        table.add({ test.name(), touched_text(test.weight_bytes_per_token), touched_text(test.kv_bytes_per_token) });
    }
    return "\n" + table.text();
}

std::string remarks(const Bench & bench) {
    std::string text;
    for (const BenchTest & test : bench.tests) {
        if (test.slower) {
            text += fmt::format(
                "{}: the bare engine with -fa {}: x {:.3f} in the first phase ({:.2f} and {:.2f} t/s)\n", test.name(),
                test.slower->flash_attn, test.slower->ratio, test.slower->ts, test.slower->better_ts);
        }
        if (const std::string warning = test.warning(bench.info.level); !warning.empty()) {
            text += "warning: " + warning + "\n";
        }
        if (test.failures > 0) {
            text += fmt::format("warning: {}: {} nodes or graphs of ours failed, and the engine computed them\n",
                                test.name(), test.failures);
        }
    }
    return text.empty() ? "" : "\n" + text;
}

} // namespace

ordered_json bench_json(const Bench & bench) {
    ordered_json tests = ordered_json::array();
    for (const BenchTest & test : bench.tests) {
        tests.push_back(test_json(bench.info, test));
    }
    return { { "kind", "cascade-bench" },
             { "version", 1 },
             { "cascade", bench.info.version },
             { "mode", bench.info.mode },
             { "text", bench.info.text.empty() ? ordered_json(nullptr) : ordered_json(bench.info.text) },
             { "rounds", bench.info.rounds },
             { "interval_level", bench.info.level },
             { "complete", bench.complete },
             { "tests_wanted", bench.wanted },
             { "tests", tests } };
}

std::string bench_table(const Bench & bench) {
    return speeds_table(bench) + bytes_table(bench) + parts_table(bench) + remarks(bench) +
           fmt::format("\nbuild: {} ({}), cascade {}\n", bench.info.build_commit, bench.info.build_number,
                       bench.info.version);
}

} // namespace cascade::report
