// What the plugin did, as JSON lines: one of type "graph" for each graph met for the first time, one of type "summary"
// for each backend that ends (a context that is freed) and now and then before that. docs/plugin.md names the fields.
#pragma once

#include "attend/joint/audit.h"
#include "attend/joint/phases.h"
#include "backend/subspace_counts.h"
#include "cascade/settings.h"
#include "graph/model_graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cascade::backend {

struct SiteReport {
    int layer = -1;
    graph::AttentionForm form = graph::AttentionForm::flash;
    bool taken = false;
    Way way = Way::engine;
    std::string why;
    float epsilon = 0.0F; // of the gate, in modes that approximate
};

// Whether the sidecar was of use.
struct SidecarReport {
    std::string refused;   // why nothing of it was used; empty: it was read
    int64_t matched = 0;   // layers of the graphs read that it knows
    int64_t unmatched = 0; // and that it doesn't
};

// Counts of one backend. Used by one thread at a time, as the backend itself.
class Stats {
  public:
    explicit Stats(const Settings & settings);
    ~Stats();
    Stats(const Stats &) = delete;
    Stats & operator=(const Stats &) = delete;

    bool wanted() const { return !settings.stats.empty(); }

    // The summaries of all that live, now: a program that measures wants to know what a part of its work took. Not
    // while one of them computes.
    static void write_summaries() noexcept;

    void new_graph(int nodes, const graph::ModelGraph & model, const std::vector<SiteReport> & sites);
    void computed(int nodes, bool rewritten, bool recognised);

    int64_t failures = 0;
    SubspaceTotals subspaces;  // where linear maps went through them
    SidecarReport sidecar;     // where settings name one
    attend::JointCounts joint; // what attention on covers read
    attend::AuditSums audit;
    int64_t uncovered = 0;            // attentions of such a mode in which nothing was covered yet
    int64_t index_bytes = 0;          // of all indexes
    attend::PhaseTimes times;         // of the same
    int64_t microseconds_reading = 0; // reading and rewriting graphs
    int64_t microseconds_ours = 0;    // inside our nodes, first thread
    int64_t microseconds_total = 0;   // inside the engine's computation, our nodes included

  private:
    void write_summary() noexcept;

    const Settings & settings;
    int64_t graphs = 0;
    int64_t graphs_new = 0;
    int64_t graphs_rewritten = 0;
    int64_t graphs_recognised = 0;
    int64_t nodes_seen = 0;
    int64_t sites_taken = 0;
    std::map<std::string, int64_t> sites_left;
    int64_t unrecognised = 0;
};

} // namespace cascade::backend
