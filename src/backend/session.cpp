#include "backend/session.h"

#include "backend/log.h"
#include "backend/machine_costs.h"
#include "graph/bind.h"
#include "graph/tensor.h"

#include <algorithm>
#include <new>

namespace cascade::backend {

namespace {

// The engine reuses its latest graph only; a program with an eval callback, or a GPU, has it computed in many parts.
constexpr size_t known_graphs = 64;

constexpr int64_t few_queries = 16; // beyond, their number makes no difference to the way that is taken

void fault_here(const Settings & settings, Fault place) {
    if (settings.fault == place) {
        throw std::bad_alloc();
    }
}

// Can `tensor` still be kept: does the graph compute or receive it, rather than own it for good?
bool is_transient(const ggml_tensor * tensor) { return tensor != nullptr && tensor->buffer == nullptr; }

} // namespace

Session::Session(ggml_backend_t used_engine, const Settings & used_settings)
    : engine(used_engine), settings(used_settings), stats(used_settings), epsilons(used_settings),
      subspaces(used_settings), joint(std::make_unique<attend::JointAttention>(settings.audit)),
      exact_shared(std::make_unique<attend::ExactShared>()), exact_scratch(GGML_MAX_N_THREADS),
      scratch(GGML_MAX_N_THREADS) {
    if (settings.approximates()) {
        indexes.emplace(watch, cover::IndexOptions());
    }
}

ggml_status Session::compute(ggml_cgraph * graph) noexcept {
    graph::Shadow * shadow = nullptr;
    GatedInputs * gated = nullptr;
    bool recognised = false;
    const int64_t start = ggml_time_us();
    if (settings.rewrites() || stats.wanted() || CacheWatch::anything_watched()) {
        try {
            Known & found = find_or_read(graph, recognised);
            shadow = found.shadow.get();
            gated = found.gated.get();
            announce_writes(found, *graph);
        } catch (...) {
            CacheWatch::everything_changes();
            stats.failures++;
            say_once(Notice::fallback, "a graph could not be rewritten (out of memory?): the engine computes it");
        }
    }
    if (indexes) {
        indexes->apply();
        joint->begin();
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
        stats.joint = joint->counts();
        stats.audit = joint->audited();
        stats.uncovered = joint->uncovered();
        stats.times = joint->times();
        if (outcome.failures > 0) {
            say_once(Notice::fallback, "an attention of ours failed: the engine's own op computed it instead");
        }
    }
    try {
        if (gated != nullptr) {
            gated->finish(subspaces.counts());
            if (stats.wanted()) {
                stats.subspaces = subspaces.counts();
            }
        }
        stats.index_bytes = indexes && stats.wanted() ? indexes->bytes() : 0;
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

Session::Known & Session::find_or_read(ggml_cgraph * graph, bool & recognised) {
    const uint64_t id = graph->uid != 0 ? graph->uid : graph::fingerprint(graph::nodes_of(*graph));
    const auto found = std::find_if(known.begin(), known.end(), [&](const Known & one) { return one.is(id, *graph); });
    if (found != known.end()) {
        recognised = true;
        known.splice(known.end(), known, found);
        if (found->shadow) {
            found->shadow->adopt(*graph);
        }
        return *found;
    }
    while (known.size() >= known_graphs) {
        known.pop_front();
    }
    known.push_back(read(id, graph));
    return known.back();
}

void Session::announce_writes(Known & found, const ggml_cgraph & graph) {
    if (!CacheWatch::anything_watched()) {
        return;
    }
    if (!found.writes) {
        found.writes = graph::read_cache_writes(graph::nodes_of(graph));
    }
    watch.before(*found.writes);
}

Session::Known Session::read(uint64_t id, ggml_cgraph * graph) {
    fault_here(settings, Fault::read);
    const graph::Nodes nodes = graph::nodes_of(*graph);
    const graph::ModelGraph model = graph::read_graph(nodes);
    std::vector<graph::Replacement> replacements;
    std::vector<SiteReport> reports;
    Known result;
    int threads = 0; // not asked yet
    if (settings.approximates()) {
        result.writes = graph::read_cache_writes(nodes);
    }
    for (const graph::Layer & layer : model.layers) {
        const bool gated = settings.approximates() && !layer.attention.empty();
        const float epsilon = gated ? epsilons.of(layer) : 0.0F;
        for (const graph::AttentionSite & site : layer.attention) {
            Attention attention;
            Decision decision = { Way::engine, graph::bind_attention(site, attention) };
            if (decision.why.empty()) {
                decision = plan(layer, site, attention, epsilon, threads);
            }
            if (decision.way != Way::engine) {
                decision.why = graph::replacement_hazard(*graph, site);
            }
            graph::NodeFunction function;
            if (decision.why.empty()) {
                function = function_of(decision.way, layer.index, site, attention, epsilon, result.writes);
                decision.why = function ? "" : "its cache can't be watched";
            }
            reports.push_back({ layer.index, site.form, function != nullptr, function ? decision.way : Way::engine,
                                decision.why, epsilon });
            if (function) {
                replacements.push_back({ site.nodes, std::move(function) });
            }
        }
    }
    fault_here(settings, Fault::rewrite);
    result.id = id;
    result.n_nodes = graph->n_nodes;
    result.first = nodes.empty() ? nullptr : nodes.front();
    result.last = nodes.empty() ? nullptr : nodes.back();
    result.gated = subspaces.of(*graph, model);
    if (!replacements.empty() || result.gated) {
        result.shadow = std::make_unique<graph::Shadow>(*graph, std::move(replacements),
                                                        result.gated ? result.gated->substitutions()
                                                                     : std::vector<graph::Substitution>());
    }
    stats.sidecar = { epsilons.refused(), epsilons.matched(), epsilons.unmatched() };
    stats.new_graph(graph->n_nodes, model, reports);
    return result;
}

Decision Session::plan(const graph::Layer & layer, const graph::AttentionSite & site, const Attention & attention,
                       float epsilon, int & threads) {
    Circumstances circumstances;
    circumstances.cached = site.uses_cache();
    circumstances.sliding = layer.sliding;
    circumstances.epsilon = epsilon;
    if (!has_choice(settings, attention, circumstances)) {
        return plan_attention(settings, attention, circumstances);
    }
    threads = threads == 0 ? threads_of(engine) : threads;
    const MeasuredShape shape = { attention.heads,      attention.kv_heads, attention.key_size,
                                  attention.value_size, site.key->type,     site.value->type };
    Experience & experience = experience_of(layer.index, attention);
    circumstances.costs = machine_costs(engine, shape, threads, settings.costs);
    circumstances.before = experience.way;
    circumstances.opened = experience.opened;
    circumstances.indexed = indexed_layers.contains(layer.index);
    const Decision decision = plan_attention(settings, attention, circumstances);
    experience.way = decision.way;
    return decision;
}

Session::Experience & Session::experience_of(int layer, const Attention & attention) {
    return experiences[{ layer, std::min(attention.queries, few_queries) }];
}

graph::NodeFunction Session::function_of(Way way, int layer, const graph::AttentionSite & site,
                                         const Attention & attention, float epsilon,
                                         const std::optional<graph::CacheWrites> & writes) {
    if (way == Way::joint) {
        StreamIndexes of_site = writes && indexes ? indexes->of(site, attention, *writes) : StreamIndexes();
        if (of_site.empty()) {
            return nullptr;
        }
        indexed_layers.insert(layer);
        return joint_function(attention, epsilon, std::move(of_site), experience_of(layer, attention));
    }
    return way == Way::fast ? fast_function(attention) : reference_function(attention);
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

// Threads wait for each other inside: an injected fault must meet all of them.
graph::NodeFunction Session::fast_function(const Attention & attention) {
    return [this, attention](int part, int parts) { return !injected_fault() && attend_fast(attention, part, parts); };
}

bool Session::attend_fast(const Attention & attention, int part, int parts) {
    return static_cast<size_t>(parts) <= exact_scratch.size() &&
           attend::attend_exact(attention, part, parts, *exact_shared, exact_scratch[static_cast<size_t>(part)]) !=
               attend::ExactWay::failed;
}

graph::NodeFunction Session::joint_function(const Attention & attention, float epsilon, StreamIndexes of_site,
                                            Experience & experience) {
    std::vector<cover::LayerIndex *> pointers(of_site.size());
    std::transform(of_site.begin(), of_site.end(), pointers.begin(), [](const auto & index) { return index.get(); });
    return [this, attention, epsilon, owned = std::move(of_site), pointers = std::move(pointers),
            &experience](int part, int parts) {
        if (injected_fault()) {
            return false;
        }
        const attend::JointCounts before = part == 0 ? joint->counts() : attend::JointCounts();
        const auto result = joint->attend(attention, pointers, epsilon, part, parts);
        if (part == 0) {
            experience.see(joint->counts(), before);
        }
        return result == attend::JointAttention::Result::done ||
               (result == attend::JointAttention::Result::left && attend_fast(attention, part, parts));
    };
}

bool Session::injected_fault() const { return settings.fault == Fault::node || settings.fault == Fault::scratch; }

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
