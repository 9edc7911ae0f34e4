#include "backend/stats.h"

#include "backend/log.h"

#include <cstdio>
#include <fcntl.h>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace cascade::backend {

namespace {

constexpr int64_t graphs_between_summaries = 1024;

// One line, whole, whatever else writes: several contexts and processes may share a file.
void write_line(const std::string & target, const nlohmann::json & line) {
    static std::mutex lock;
    const std::lock_guard guard(lock);
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (target == "-") {
        std::fwrite(text.data(), 1, text.size(), stderr);
        return;
    }
    const int file = ::open(target.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    const bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (file >= 0) {
        ::close(file);
    }
    if (!written) {
        say_once(Notice::stats, "can't write GGML_CASCADE_STATS=" + target + ": give a file that can be written, or -");
    }
}

// Means of what was observed in passing, as shares of the output's length.
nlohmann::json audited(const attend::AuditSums & audit) {
    return { { "rows", audit.rows },
             { "error", audit.observed / audit.output },
             { "estimate", audit.estimated / audit.output },
             { "bound", audit.bound / audit.output },
             { "above_bound", audit.above_bound },
             { "worst_of_bound", audit.worst_of_bound } };
}

nlohmann::json gated_through(const SubspaceTotals & totals) {
    nlohmann::json all = nlohmann::json::object();
    for (const auto & [input, counts] : totals) {
        all[input] = { { "tokens", counts.tokens },
                       { "passed", counts.passed },
                       { "rough", counts.rough },
                       { "weight_bytes", counts.weight_bytes },
                       { "bytes", counts.bytes } };
    }
    return all;
}

nlohmann::json seconds_of(const attend::PhaseTimes & times) {
    nlohmann::json seconds = nlohmann::json::object();
    for (int phase = 0; phase < attend::phases; phase++) {
        seconds[attend::phase_names[static_cast<size_t>(phase)]] = times.seconds(static_cast<attend::Phase>(phase));
    }
    return seconds;
}

// Never destroyed: a program may free its last context after our static objects are gone.
struct Living {
    std::mutex lock;
    std::vector<Stats *> all;
};

Living & living() {
    static Living & instance = *new Living();
    return instance;
}

} // namespace

Stats::Stats(const Settings & used) : settings(used) {
    const std::lock_guard guard(living().lock);
    living().all.push_back(this);
}

Stats::~Stats() {
    const std::lock_guard guard(living().lock);
    std::erase(living().all, this);
    write_summary();
}

void Stats::write_summaries() noexcept {
    const std::lock_guard guard(living().lock);
    for (Stats * one : living().all) {
        one->write_summary();
    }
}

void Stats::new_graph(int nodes, const graph::ModelGraph & model, const std::vector<SiteReport> & sites) {
    graphs_new++;
    unrecognised += static_cast<int64_t>(model.unrecognised.size());
    nlohmann::json attention = nlohmann::json::array();
    for (const SiteReport & site : sites) {
        (site.taken ? sites_taken : sites_left[site.why])++;
        attention.push_back({ { "layer", site.layer },
                              { "form", graph::form_name(site.form) },
                              { "taken", site.taken },
                              { "way", way_name(site.way) },
                              { "why", site.why } });
        if (settings.approximates()) {
            attention.back()["epsilon"] = site.epsilon;
        }
    }
    if (!wanted()) {
        return;
    }
    size_t linear = model.outside.size();
    for (const graph::Layer & layer : model.layers) {
        linear += layer.linear.size();
    }
    nlohmann::json strange = nlohmann::json::array();
    for (const graph::Unrecognised & node : model.unrecognised) {
        strange.push_back({ { "node", node.name }, { "op", node.op }, { "why", node.why } });
    }
    write_line(settings.stats, { { "type", "graph" },
                                 { "mode", mode_name(settings.mode) },
                                 { "nodes", nodes },
                                 { "layers", model.layers.size() },
                                 { "linear", linear },
                                 { "attention", attention },
                                 { "unrecognised", strange } });
}

void Stats::computed(int nodes, bool rewritten, bool recognised) {
    graphs++;
    nodes_seen += nodes;
    graphs_rewritten += rewritten ? 1 : 0;
    graphs_recognised += recognised ? 1 : 0;
    if (graphs % graphs_between_summaries == 0) {
        write_summary();
    }
}

void Stats::write_summary() noexcept {
    if (!wanted() || graphs == 0) {
        return;
    }
    try {
        constexpr double second = 1e6;
        const nlohmann::json on_covers = { { "rows", joint.rows },
                                           { "window", joint.exact },
                                           { "covered", joint.covered },
                                           { "opened", joint.opened },
                                           { "speakers", joint.speakers },
                                           { "bytes", joint.bytes },
                                           { "dense_bytes", joint.dense_bytes } };
        nlohmann::json summary = { { "type", "summary" },
                                   { "mode", mode_name(settings.mode) },
                                   { "graphs", graphs },
                                   { "graphs_new", graphs_new },
                                   { "graphs_recognised", graphs_recognised },
                                   { "graphs_rewritten", graphs_rewritten },
                                   { "nodes", nodes_seen },
                                   { "sites_taken", sites_taken },
                                   { "sites_left", sites_left },
                                   { "unrecognised", unrecognised },
                                   { "failures", failures },
                                   { "uncovered", uncovered },
                                   { "on_covers", on_covers },
                                   { "index_bytes", index_bytes },
                                   { "seconds_on_covers", seconds_of(times) },
                                   { "seconds_reading", static_cast<double>(microseconds_reading) / second },
                                   { "seconds_ours", static_cast<double>(microseconds_ours) / second },
                                   { "seconds_engine",
                                     static_cast<double>(microseconds_total - microseconds_ours) / second } };
        if (audit.rows > 0) {
            summary["audit"] = audited(audit);
        }
        if (!settings.sidecar.empty() && settings.approximates()) {
            summary["sidecar"] = { { "used", sidecar.matched > 0 },
                                   { "refused", sidecar.refused },
                                   { "layers_matched", sidecar.matched },
                                   { "layers_unmatched", sidecar.unmatched } };
        }
        if (!subspaces.empty()) {
            summary["subspaces"] = gated_through(subspaces);
        }
        write_line(settings.stats, summary);
    } catch (...) {
        say_once(Notice::stats, "statistics are incomplete: out of memory");
    }
}

} // namespace cascade::backend
