#include "backend/session.h"

#include "backend/log.h"
#include "graph/bind.h"
#include "graph/tensor.h"
#include "plan/plan.h"

#include <algorithm>
#include <new>

namespace cascade::backend {

namespace {

// The engine reuses its latest graph only; a program with an eval callback, or a GPU, has it computed in many parts.
constexpr size_t known_graphs = 64;

void fault_here(const Settings & settings, Fault place) {
    if (settings.fault == place) {
        throw std::bad_alloc();
    }
}

// Can `tensor` still be kept: does the graph compute or receive it, rather than own it for good?
bool is_transient(const ggml_tensor * tensor) { return tensor != nullptr && tensor->buffer == nullptr; }

} // namespace

Session::Session(ggml_backend_t used_engine, const Settings & used_settings)
    : engine(used_engine), settings(used_settings), stats(used_settings), scratch(GGML_MAX_N_THREADS) {}

ggml_status Session::compute(ggml_cgraph * graph) noexcept {
    graph::Shadow * shadow = nullptr;
    bool recognised = false;
    const int64_t start = ggml_time_us();
    if (settings.rewrites() || stats.wanted()) {
        try {
            if (const Known * found = find_or_read(graph, recognised)) {
                shadow = found->shadow.get();
            }
        } catch (...) {
            stats.failures++;
            say_once(Notice::fallback, "a graph could not be rewritten (out of memory?): the engine computes it");
        }
    }
    const int64_t read = ggml_time_us();
    ggml_status status = GGML_STATUS_ALLOC_FAILED;
    try {
        status = ggml_backend_graph_compute_async(engine, shadow != nullptr ? shadow->graph() : graph);
    } catch (...) {
        say_once(Notice::fallback, "the engine ran out of memory in a computation");
    }
    const int64_t end = ggml_time_us();
    stats.microseconds_reading += read - start;
    stats.microseconds_total += end - read;
    if (shadow != nullptr) {
        const auto outcome = shadow->finish();
        stats.failures += outcome.failures;
        stats.microseconds_ours += outcome.microseconds;
        if (outcome.failures > 0) {
            say_once(Notice::fallback, "an attention of ours failed: the engine's own op computed it instead");
        }
    }
    try {
        stats.computed(graph->n_nodes, shadow != nullptr, recognised);
    } catch (...) {
        say_once(Notice::stats, "statistics are incomplete: out of memory");
    }
    return status;
}

bool Session::Known::is(uint64_t other_id, const ggml_cgraph & graph) const {
    return id == other_id && n_nodes == graph.n_nodes && n_nodes > 0 && first == graph.nodes[0] &&
           last == graph.nodes[n_nodes - 1];
}

Session::Known * Session::find_or_read(ggml_cgraph * graph, bool & recognised) {
    const uint64_t id = graph->uid != 0 ? graph->uid : graph::fingerprint(graph::nodes_of(*graph));
    const auto found = std::find_if(known.begin(), known.end(), [&](const Known & one) { return one.is(id, *graph); });
    if (found != known.end()) {
        recognised = true;
        known.splice(known.end(), known, found);
        if (found->shadow) {
            found->shadow->adopt(*graph);
        }
        return &*found;
    }
    while (known.size() >= known_graphs) {
        known.pop_front();
    }
    known.push_back(read(id, graph));
    return &known.back();
}

Session::Known Session::read(uint64_t id, ggml_cgraph * graph) {
    fault_here(settings, Fault::read);
    const graph::Nodes nodes = graph::nodes_of(*graph);
    const graph::ModelGraph model = graph::read_graph(nodes);
    std::vector<graph::Replacement> replacements;
    std::vector<SiteReport> reports;
    for (const graph::Layer & layer : model.layers) {
        for (const graph::AttentionSite & site : layer.attention) {
            Attention attention;
            Decision decision = { false, graph::bind_attention(site, attention) };
            if (decision.why.empty()) {
                decision = plan_attention(settings, attention);
            }
            if (decision.take) {
                decision.why = graph::replacement_hazard(*graph, site);
                decision.take = decision.why.empty();
            }
            if (decision.take) {
                replacements.push_back({ site.nodes, reference_function(attention) });
            }
            reports.push_back({ layer.index, site.form, decision.take, decision.why });
        }
    }
    fault_here(settings, Fault::rewrite);
    Known result;
    result.id = id;
    result.n_nodes = graph->n_nodes;
    result.first = nodes.empty() ? nullptr : nodes.front();
    result.last = nodes.empty() ? nullptr : nodes.back();
    if (!replacements.empty()) {
        result.shadow = std::make_unique<graph::Shadow>(*graph, std::move(replacements));
    }
    stats.new_graph(graph->n_nodes, model, reports);
    return result;
}

graph::NodeFunction Session::reference_function(const Attention & attention) {
    return [this, attention](int part, int parts) {
        fault_here(settings, Fault::scratch);
        if (settings.fault == Fault::node || static_cast<size_t>(part) >= scratch.size()) {
            return false;
        }
        attend_reference(attention, part, parts, scratch[static_cast<size_t>(part)]);
        return true;
    };
}

void Session::keep_sources(ggml_cgraph * graph, ggml_backend_graph_optimize_params * params) noexcept {
    if (!settings.rewrites() || params == nullptr) {
        return;
    }
    try {
        const graph::ModelGraph model = graph::read_graph(graph::nodes_of(*graph));
        for (const graph::Layer & layer : model.layers) {
            for (const graph::AttentionSite & site : layer.attention) {
                if (site.form != graph::AttentionForm::softmax) {
                    continue;
                }
                ggml_tensor * until = graph->nodes[site.nodes.back()];
                for (const ggml_tensor * source : { site.query, site.key, site.mask, site.sinks }) {
                    const ggml_tensor * root = graph::root_of(source);
                    if (is_transient(root)) {
                        params->add_alloc_dep(params->user_data, const_cast<ggml_tensor *>(root), until);
                    }
                }
            }
        }
    } catch (...) {
        // without the dependency the chain's memory may be reused; replacement_hazard sees that and leaves it alone
        stats.failures++;
        say_once(Notice::fallback, "a graph could not be read (out of memory?): the engine computes it");
    }
}

} // namespace cascade::backend
