// cascade doctor: a model, opened in a child process, since a file may be anything.
#include "cli/child.h"
#include "cli/cpu.h"
#include "cli/doctor.h"
#include "cli/engine.h"
#include "cli/probe.h"
#include "graph/bind.h"
#include "graph/model_graph.h"
#include "plan/plan.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <set>

namespace cascade::cli {

namespace {

using nlohmann::json;

constexpr std::chrono::seconds patience{ 300 }; // a large model from a slow disk
constexpr double giga = 1024.0 * 1024.0 * 1024.0;

// Which attentions the plan takes, as the plugin would ask it, and why it leaves the others.
json planned(const graph::ModelGraph & graph, const Settings & settings) {
    int taken = 0;
    int left = 0;
    std::map<std::string, int> reasons;
    for (const graph::Layer & layer : graph.layers) {
        for (const graph::AttentionSite & site : layer.attention) {
            Attention attention;
            Decision decision = { Way::engine, graph::bind_attention(site, attention) };
            if (decision.why.empty()) {
                decision = plan_attention(settings, attention, { site.uses_cache(), layer.sliding, settings.gate() });
            }
            const bool ours = decision.way != Way::engine;
            taken += ours ? 1 : 0;
            left += ours ? 0 : 1;
            if (!ours) {
                reasons[decision.why]++;
            }
        }
    }
    return { { "taken", taken }, { "left", left }, { "why_left", reasons } };
}

// Bytes of the KV caches (as the probe made them, in f16) with the whole context. Those of a sliding window hold the
// window and a batch, however long the context is.
uint64_t cache_bytes(const graph::ModelGraph & graph, const Probe & probe, uint64_t context) {
    constexpr uint64_t batch = 512; // the engine's default
    std::set<const ggml_tensor *> seen;
    uint64_t bytes = 0;
    for (const graph::Layer & layer : graph.layers) {
        const uint64_t cells =
            layer.sliding ? std::min(context, static_cast<uint64_t>(probe.sliding_window) + batch) : context;
        for (const graph::AttentionSite & site : layer.attention) {
            const auto sizes = { std::pair(site.key_cache, site.key_size()), { site.value_cache, site.value_size() } };
            for (const auto & [cache, size] : sizes) {
                if (cache != nullptr && seen.insert(cache).second) {
                    bytes += cells * ggml_row_size(cache->type, size * site.kv_heads());
                }
            }
        }
    }
    return bytes;
}

std::string look_at_model(const std::string & path, const Settings & settings) {
    if (const char * variable = std::getenv("GGML_BACKEND_PATH"); variable != nullptr) {
        unsetenv("GGML_BACKEND_PATH"); // the plugin has its own check
    }
    ProbeOptions options;
    options.model = path;
    const auto probe = probe_model(options);
    const graph::ModelGraph graph = graph::read_graph(probe->nodes);
    const auto context = static_cast<uint64_t>(std::max(0, llama_model_n_ctx_train(probe->model.get())));
    return json{
        { "architecture", probe->architecture },
        { "context", context },
        { "layers", llama_model_n_layer(probe->model.get()) },
        { "layers_recognised", graph.layers.size() },
        { "unrecognised", graph.unrecognised.size() },
        { "sliding_window", probe->sliding_window },
        { "weight_bytes", llama_model_size(probe->model.get()) },
        { "cache_bytes", cache_bytes(graph, *probe, context) },
        { "attention", planned(graph, settings) }
    }.dump(-1, ' ', false, json::error_handler_t::replace);
}

Check describe_layers(const json & model) {
    const int all = model["layers"];
    const int recognised = model["layers_recognised"];
    const int strange = model["unrecognised"];
    Check check = { "layers", Health::ok, fmt::format("{} of {} recognised", recognised, all), "", {} };
    if (recognised < all || strange > 0) {
        check.health = Health::note;
        check.finding += fmt::format(", {} nodes not; the engine computes those", strange);
        check.remedy = "'cascade graph' shows which";
    }
    return check;
}

Check describe_attention(const json & attention, const Settings & settings) {
    std::vector<std::string> reasons;
    for (const auto & [why, count] : attention["why_left"].items()) {
        reasons.push_back(fmt::format("{}: {}", count.get<int>(), why));
    }
    const std::string left = reasons.empty() ? "" : fmt::format(" ({})", fmt::join(reasons, ", "));
    return { "attention", Health::ok,
             fmt::format("mode {} takes {} and leaves {}{}", mode_name(settings.mode), attention["taken"].get<int>(),
                         attention["left"].get<int>(), left),
             "", attention };
}

Check describe_memory(const json & model) {
    const uint64_t cache = model["cache_bytes"];
    const uint64_t weights = model["weight_bytes"];
    const uint64_t available = memory().available;
    Check check = { "KV cache",
                    Health::ok,
                    fmt::format("{:.2f} GiB in f16 for all {} tokens, beside {:.2f} GiB of weights",
                                static_cast<double>(cache) / giga, model["context"].get<uint64_t>(),
                                static_cast<double>(weights) / giga),
                    "",
                    {} };
    if (available > 0 && cache + weights > available) {
        check.health = Health::note;
        check.finding += fmt::format(", more than the {:.1f} GiB available", static_cast<double>(available) / giga);
        check.remedy = "give a smaller -c, or -ctk q8_0 -ctv q8_0";
    }
    return check;
}

} // namespace

Checks check_model(const std::string & path, const Settings & settings, ModelState & state) {
    const ChildResult result = in_child([&] { return look_at_model(path, settings); }, patience);
    const std::string name = file_name(path);
    if (result.end == ChildResult::End::failed) {
        return { { "model",
                   Health::problem,
                   fmt::format("{} doesn't open: {}", name, first_complaint(result.errors)),
                   "give a whole GGUF file of a model that this engine knows",
                   {} } };
    }
    if (result.end != ChildResult::End::finished) {
        return { { "model",
                   Health::problem,
                   fmt::format("opening {} {}: {}", name, result.misfortune(), first_complaint(result.errors)),
                   "the file is damaged or hostile: fetch it anew from a place you trust",
                   {} } };
    }
    const json model = json::parse(result.output);
    state.opens = true;
    state.taken = model["attention"]["taken"];
    state.attentions = state.taken + model["attention"]["left"].get<int>();
    return { { "model", Health::ok,
               fmt::format("{} opens: {}, {} layers, context of {} tokens", name,
                           model["architecture"].get<std::string>(), model["layers"].get<int>(),
                           model["context"].get<uint64_t>()),
               "", model },
             describe_layers(model),
             describe_attention(model["attention"], settings),
             describe_memory(model) };
}

} // namespace cascade::cli
