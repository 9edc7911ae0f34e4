#include "report/bench_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace cascade::report {

namespace {

using nlohmann::ordered_json;

constexpr double nanoseconds = 1e9;

struct Spread {
    double mean = 0.0;
    double deviation = 0.0;
};

Spread spread_of(const std::vector<double> & values) {
    Spread result;
    if (values.empty()) {
        return result;
    }
    const auto count = static_cast<double>(values.size());
    result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    if (values.size() > 1) {
        const double squares = std::accumulate(values.begin(), values.end(), 0.0, [&](double sum, double value) {
            return sum + ((value - result.mean) * (value - result.mean));
        });
        result.deviation = std::sqrt(squares / (count - 1.0));
    }
    return result;
}

ordered_json number_or_null(double value) { return std::isnan(value) ? ordered_json(nullptr) : ordered_json(value); }

std::vector<uint64_t> in_nanoseconds(const std::vector<double> & seconds) {
    std::vector<uint64_t> result;
    std::transform(seconds.begin(), seconds.end(), std::back_inserter(result),
                   [](double one) { return static_cast<uint64_t>(std::llround(one * nanoseconds)); });
    return result;
}

// Where llama-bench has settings that we don't, the value is the one we run with.
void add_settings(ordered_json & row, const BenchInfo & info, const BenchTest & test) {
    row["model_filename"] = info.model_filename;
    row["model_type"] = info.model_type;
    row["model_size"] = info.model_size;
    row["model_n_params"] = info.model_n_params;
    row["n_batch"] = info.n_batch;
    row["n_ubatch"] = info.n_ubatch;
    row["n_threads"] = info.n_threads;
    row["cpu_mask"] = "0x0";
    row["cpu_strict"] = false;
    row["poll"] = 50;
    row["type_k"] = info.type_k;
    row["type_v"] = info.type_v;
    row["n_gpu_layers"] = 0;
    row["n_cpu_moe"] = 0;
    row["split_mode"] = "layer";
    row["main_gpu"] = 0;
    row["no_kv_offload"] = false;
    row["flash_attn"] = test.flash_attn;
    row["devices"] = "auto";
    row["tensor_split"] = "0.00";
    row["tensor_buft_overrides"] = "none";
    row["load_mode"] = info.load_mode;
    row["lazy_mode"] = "auto";
    row["embeddings"] = false;
    row["no_op_offload"] = 0;
    row["no_host"] = false;
    row["fit_target"] = 0;
    row["fit_min_ctx"] = 0;
}

// What a row's values are in SQL. llama-bench's own types, known by name where a value of ours may be missing.
const char * sql_type(const std::string & column, const ordered_json & value) {
    if (column == "mode" || value.is_string()) {
        return "TEXT";
    }
    return value.is_number_float() || value.is_null() ? "REAL" : "INTEGER";
}

std::string plain(const ordered_json & value) {
    if (value.is_string()) {
        return value.get<std::string>();
    }
    if (value.is_boolean()) {
        return value.get<bool>() ? "1" : "0";
    }
    if (value.is_number_float()) {
        return fmt::format("{:.6f}", value.get<double>());
    }
    return value.is_null() ? "" : value.dump();
}

std::string quoted(const std::string & text, char quote) {
    std::string result(1, quote);
    for (const char c : text) {
        result += c == quote ? std::string(2, quote) : std::string(1, c);
    }
    return result + quote;
}

template <typename Cell>
std::string joined(const ordered_json & row, const char * between, const Cell & cell) {
    std::string text;
    for (const auto & [name, value] : row.items()) {
        text += (text.empty() ? "" : between) + cell(name, value);
    }
    return text;
}

std::string name_of_column(const std::string & name, const ordered_json &) { return name; }

ordered_json without_samples(ordered_json row) {
    row.erase("samples_ns");
    row.erase("samples_ts");
    return row;
}

// Every row, flat. One of an empty test where there are none, for the names of the columns.
template <typename Use>
void for_each_row(const Bench & bench, const Use & use) {
    for (const BenchTest & test : bench.tests) {
        for (const bool ours : { false, true }) {
            use(without_samples(bench_row(bench.info, test, ours)));
        }
    }
}

ordered_json columns_of(const Bench & bench) { return without_samples(bench_row(bench.info, BenchTest(), true)); }

} // namespace

ordered_json bench_row(const BenchInfo & info, const BenchTest & test, bool ours) {
    const BenchSide & side = ours ? info.ours : info.bare;
    const std::vector<double> & seconds = ours ? test.ours : test.bare;
    const Spread time = spread_of(seconds);
    const Spread speed = spread_of(test.speeds(seconds));
    ordered_json row;
    row["build_commit"] = info.build_commit;
    row["build_number"] = info.build_number;
    row["cpu_info"] = side.cpu_info;
    row["gpu_info"] = info.gpu_info;
    row["backends"] = side.backends;
    add_settings(row, info, test);
    row["n_prompt"] = test.n_prompt;
    row["n_gen"] = test.n_gen;
    row["n_depth"] = test.n_depth;
    row["test_time"] = test.test_time;
    row["avg_ns"] = static_cast<uint64_t>(std::llround(time.mean * nanoseconds));
    row["stddev_ns"] = static_cast<uint64_t>(std::llround(time.deviation * nanoseconds));
    row["avg_ts"] = speed.mean;
    row["stddev_ts"] = speed.deviation;
    const auto ratio = ours ? test.ratio(info.level) : analysis::PairedRatio();
    row["mode"] = ours ? info.mode : "bare";
    row["ratio"] = number_or_null(ratio.ratio);
    row["ratio_low"] = number_or_null(ratio.low);
    row["ratio_high"] = number_or_null(ratio.high);
    row["samples_ns"] = in_nanoseconds(seconds);
    row["samples_ts"] = test.speeds(seconds);
    return row;
}

std::string bench_csv(const Bench & bench) {
    std::string text = joined(columns_of(bench), ",", name_of_column) + "\n";
    for_each_row(bench, [&](const ordered_json & row) {
        text += joined(row, ",",
                       [](const std::string &, const ordered_json & value) { return quoted(plain(value), '"'); }) +
                "\n";
    });
    return text;
}

std::string bench_jsonl(const Bench & bench) {
    std::string text;
    for (const BenchTest & test : bench.tests) {
        for (const bool ours : { false, true }) {
            text +=
                bench_row(bench.info, test, ours).dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
        }
    }
    return text;
}

std::string bench_sql(const Bench & bench) {
    const ordered_json columns = columns_of(bench);
    std::string text = "CREATE TABLE IF NOT EXISTS llama_bench (\n  " +
                       joined(columns, ",\n  ",
                              [](const std::string & name, const ordered_json & value) {
                                  return name + " " + sql_type(name, value);
                              }) +
                       "\n);\n\n";
    const std::string names = joined(columns, ", ", name_of_column);
    for_each_row(bench, [&](const ordered_json & row) {
        text += "INSERT INTO llama_bench (" + names + ") VALUES (" +
                joined(row, ", ",
                       [](const std::string &, const ordered_json & value) {
                           return value.is_null() ? "NULL" : quoted(plain(value), '\'');
                       }) +
                ");\n";
    });
    return text;
}

} // namespace cascade::report
