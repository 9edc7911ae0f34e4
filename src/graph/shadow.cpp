#include "graph/shadow.h"

#include "graph/tensor.h"

#include <atomic>
#include <cstring>
#include <new>

namespace cascade::graph {

struct Shadow::Taken {
    NodeFunction function;
    ggml_tensor node = {};
    std::vector<ggml_tensor> fallback;
    std::atomic<bool> failed = false;
    int64_t microseconds = 0;

    Taken(const ggml_cgraph & original, Replacement replacement) : function(std::move(replacement.function)) {
        fallback.reserve(replacement.nodes.size());
        for (const int i : replacement.nodes) {
            fallback.push_back(*original.nodes[i]);
            fallback.back().flags &= ~GGML_TENSOR_FLAG_COMPUTE;
        }
        node = *original.nodes[replacement.nodes.back()];
        node.op = GGML_OP_CUSTOM;
        node.flags |= GGML_TENSOR_FLAG_COMPUTE;
        const ggml_custom_op_params params = { run, GGML_N_TASKS_MAX, this };
        static_assert(sizeof(params) <= sizeof(node.op_params));
        std::memset(node.op_params, 0, sizeof(node.op_params));
        std::memcpy(node.op_params, &params, sizeof(params));
    }

    // The engine's threads call this; nothing may leave it.
    static void run(ggml_tensor * /*dst*/, int part, int parts, void * userdata) noexcept {
        auto & self = *static_cast<Taken *>(userdata);
        const int64_t start = part == 0 ? ggml_time_us() : 0;
        bool done = false;
        try {
            done = self.function(part, parts);
        } catch (...) {
            done = false;
        }
        if (!done) {
            self.fail();
        }
        if (part == 0) {
            self.microseconds += ggml_time_us() - start;
        }
    }

    // Only one thread writes the flags; the engine's barrier after the node shows them to the others.
    void fail() {
        if (!failed.exchange(true)) {
            for (ggml_tensor & copy : fallback) {
                copy.flags |= GGML_TENSOR_FLAG_COMPUTE;
            }
        }
    }

    bool rearm() {
        const bool had_failed = failed.exchange(false);
        for (ggml_tensor & copy : fallback) {
            copy.flags &= ~GGML_TENSOR_FLAG_COMPUTE;
        }
        return had_failed;
    }
};

Shadow::Shadow(const ggml_cgraph & original, std::vector<Replacement> replacements,
               const std::vector<Substitution> & substitutions)
    : shadow(original) {
    std::vector<Taken *> ends(static_cast<size_t>(original.n_nodes), nullptr);
    std::vector<bool> replaced(static_cast<size_t>(original.n_nodes), false);
    size_t extra = 0;
    taken.reserve(replacements.size());
    for (Replacement & replacement : replacements) {
        for (const int i : replacement.nodes) {
            replaced[static_cast<size_t>(i)] = true;
        }
        const auto end = static_cast<size_t>(replacement.nodes.back());
        extra += 1 + replacement.nodes.size();
        taken.push_back(std::make_unique<Taken>(original, std::move(replacement)));
        ends[end] = taken.back().get();
    }
    std::vector<const Substitution *> substituted(ends.size(), nullptr);
    for (const Substitution & substitution : substitutions) {
        substituted[static_cast<size_t>(substitution.node)] = &substitution;
        extra += substitution.nodes.size();
    }
    nodes.reserve(static_cast<size_t>(original.n_nodes) + extra);
    for (size_t i = 0; i < ends.size(); i++) {
        if (substituted[i] != nullptr) {
            nodes.insert(nodes.end(), substituted[i]->nodes.begin(), substituted[i]->nodes.end());
        } else if (!replaced[i]) {
            nodes.push_back(original.nodes[i]);
        } else if (ends[i] != nullptr) {
            nodes.push_back(&ends[i]->node);
            for (ggml_tensor & copy : ends[i]->fallback) {
                nodes.push_back(&copy);
            }
        }
    }
    shadow.nodes = nodes.data();
    shadow.n_nodes = static_cast<int>(nodes.size());
    shadow.size = shadow.n_nodes;
    shadow.grads = nullptr;
    shadow.grad_accs = nullptr;
    shadow.uid = 0;
}

Shadow::~Shadow() = default;

// Use counts and their hash set are the original's: the engine looks there which neighbouring nodes it can fuse.
void Shadow::adopt(const ggml_cgraph & same_nodes) {
    shadow.leafs = same_nodes.leafs;
    shadow.n_leafs = same_nodes.n_leafs;
    shadow.use_counts = same_nodes.use_counts;
    shadow.visited_hash_set = same_nodes.visited_hash_set;
    shadow.order = same_nodes.order;
}

Shadow::Outcome Shadow::finish() {
    Outcome outcome;
    for (const auto & one : taken) {
        outcome.failures += one->rearm() ? 1 : 0;
        outcome.microseconds += one->microseconds;
        one->microseconds = 0;
    }
    return outcome;
}

std::string replacement_hazard(const ggml_cgraph & graph, const AttentionSite & site) {
    const Nodes nodes = nodes_of(graph);
    const ggml_tensor * sources[] = { site.query, site.key, site.value, site.mask, site.sinks };
    auto next = site.nodes.begin();
    for (int i = site.nodes.front(); i <= site.nodes.back(); i++) {
        const ggml_tensor * node = nodes[static_cast<size_t>(i)];
        if (node == nullptr || is_view_op(node)) {
            continue;
        }
        const bool in_chain = i == *next;
        next += in_chain ? 1 : 0;
        if (in_chain && (node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0) {
            return "not computed in this graph";
        }
        if (in_chain && i != site.nodes.back()) {
            if (ggml_node_get_use_count(&graph, i) != 1) {
                return "an intermediate result is read elsewhere";
            }
            continue;
        }
        for (const ggml_tensor * source : sources) {
            // a node in between may compute a source (the values laid out anew), but none may lose one
            if (source != nullptr && root_of(source) != node && overlap(source, node)) {
                return "memory of a source is reused";
            }
        }
        for (const int link : site.nodes) {
            if (!in_chain && overlap(nodes[static_cast<size_t>(link)], node)) {
                return "memory of an intermediate result is reused";
            }
        }
    }
    return {};
}

uint64_t fingerprint(Nodes nodes) {
    uint64_t hash = 1469598103934665603ULL ^ nodes.size();
    const auto mix = [&hash](const ggml_tensor * tensor) {
        constexpr size_t words = sizeof(ggml_tensor) / sizeof(uint64_t);
        uint64_t content[words];
        std::memcpy(content, tensor, sizeof(content));
        for (const uint64_t word : content) {
            hash = (hash ^ word) * 1099511628211ULL;
            hash ^= hash >> 29;
        }
    };
    for (const ggml_tensor * node : nodes) {
        hash = (hash ^ reinterpret_cast<uintptr_t>(node)) * 1099511628211ULL;
        if (node == nullptr) {
            continue;
        }
        mix(node);
        for (const ggml_tensor * source : node->src) {
            if (source == nullptr) {
                continue;
            }
            mix(source); // it may be in no list of nodes: a leaf, or a node of another part of the graph
            if (source->view_src != nullptr) {
                mix(source->view_src);
            }
        }
    }
    return hash == 0 ? 1 : hash;
}

} // namespace cascade::graph
