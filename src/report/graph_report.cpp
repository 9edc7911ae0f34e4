#include "report/graph_report.h"

#include "report/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cascade::report {

namespace {

using nlohmann::json;

json name_of(const ggml_tensor * tensor) { return tensor != nullptr ? json(tensor->name) : json(nullptr); }

json linear_json(const graph::LinearSite & site) {
    return { { "site", site.name },
             { "weight", site.weight->name },
             { "type", ggml_type_name(site.weight->type) },
             { "inputs", site.weight->ne[0] },
             { "outputs", site.weight->ne[1] },
             { "input", name_of(site.input) },
             { "input_group", site.input_group },
             { "routed", site.routed } };
}

json linear_list(const std::vector<graph::LinearSite> & sites) {
    json list = json::array();
    for (const auto & site : sites) {
        list.push_back(linear_json(site));
    }
    return list;
}

json writes_json(const std::vector<graph::CacheWrite> & writes) {
    json list = json::array();
    for (const auto & write : writes) {
        list.push_back({ { "cache", name_of(write.cache) }, { "index", name_of(write.index) } });
    }
    return list;
}

void add_attention(json & layer, const graph::AttentionSite & site) {
    layer["attention"] = graph::form_name(site.form);
    layer["heads"] = site.heads();
    layer["kv_heads"] = site.kv_heads();
    layer["head_size"] = site.key_size();
    layer["value_size"] = site.value_size();
    layer["scale"] =
        site.soft_cap != 0.0F ? site.pre_scale * site.soft_cap * site.post_scale : site.pre_scale * site.post_scale;
    layer["soft_cap"] = site.soft_cap;
    layer["alibi"] = site.max_bias;
    layer["sinks"] = name_of(site.sinks);
    layer["bias"] = name_of(site.bias);
    layer["mask"] = name_of(site.mask);
    layer["key_cache"] = name_of(site.key_cache);
    layer["key_type"] = ggml_type_name(site.key->type);
    layer["value_cache"] = name_of(site.value_cache);
    layer["value_type"] = ggml_type_name(site.value->type);
}

json layer_json(const graph::Layer & layer, const GraphSummary & summary) {
    json result = { { "index", layer.index },
                    { "attention", nullptr },
                    { "sliding_window", layer.sliding ? summary.sliding_window : 0 },
                    { "residual", name_of(layer.residual) },
                    { "normalised", name_of(layer.normalised) },
                    { "pre_rotary_key", name_of(layer.pre_rotary_key) },
                    { "post_rotary_key", name_of(layer.post_rotary_key) },
                    { "rotary", layer.pre_rotary_key != layer.post_rotary_key },
                    { "value", name_of(layer.new_value) },
                    { "key_writes", writes_json(layer.key_writes) },
                    { "value_writes", writes_json(layer.value_writes) },
                    { "linear", linear_list(layer.linear) } };
    if (!layer.attention.empty()) {
        add_attention(result, layer.attention.front());
    }
    return result;
}

std::string extras(const graph::AttentionSite & site) {
    std::string text;
    text += site.soft_cap != 0.0F ? fmt::format("cap {:g} ", site.soft_cap) : "";
    text += site.max_bias != 0.0F ? fmt::format("alibi {:g} ", site.max_bias) : "";
    text += site.sinks != nullptr ? "sinks " : "";
    text += site.bias != nullptr ? "bias " : "";
    text += site.uses_cache() ? "" : "no cache ";
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

// Sites that share an input stand together; a semicolon parts them from the next.
std::string linear_text(const std::vector<graph::LinearSite> & sites) {
    std::string text;
    for (size_t i = 0; i < sites.size(); i++) {
        const bool same = i > 0 && sites[i].input_group == sites[i - 1].input_group;
        text += (i == 0 ? "" : (same ? " " : "; ")) + sites[i].name;
    }
    return text;
}

std::vector<std::string> layer_cells(const graph::Layer & layer, const GraphSummary & summary) {
    if (layer.attention.empty()) {
        return { "none", "", "", "", "", "", "", "", linear_text(layer.linear) };
    }
    const auto & site = layer.attention.front();
    return { graph::form_name(site.form),
             fmt::format("{}", site.heads()),
             fmt::format("{}", site.kv_heads()),
             fmt::format("{}", site.key_size()),
             layer.sliding ? fmt::format("{}", summary.sliding_window) : "-",
             layer.pre_rotary_key != layer.post_rotary_key ? "yes" : "no",
             fmt::format("{}/{}", ggml_type_name(site.key->type), ggml_type_name(site.value->type)),
             extras(site),
             linear_text(layer.linear) };
}

} // namespace

json graph_json(const graph::ModelGraph & graph, const GraphSummary & summary) {
    json layers = json::array();
    for (const auto & layer : graph.layers) {
        layers.push_back(layer_json(layer, summary));
    }
    json strange = json::array();
    for (const auto & node : graph.unrecognised) {
        strange.push_back({ { "node", node.name }, { "op", node.op }, { "why", node.why } });
    }
    return { { "model", summary.model }, { "architecture", summary.architecture },  { "nodes", summary.nodes },
             { "layers", layers },       { "outside", linear_list(graph.outside) }, { "unrecognised", strange } };
}

std::string graph_table(const graph::ModelGraph & graph, const GraphSummary & summary) {
    Table table({ "layer", "attention", "heads", "kv", "size", "window", "rotary", "k/v", "extras", "linear maps" });
    for (size_t i = 0; i < graph.layers.size();) {
        const auto cells = layer_cells(graph.layers[i], summary);
        size_t end = i + 1;
        while (end < graph.layers.size() && layer_cells(graph.layers[end], summary) == cells) {
            end++;
        }
        const int first = graph.layers[i].index;
        const int last = graph.layers[end - 1].index;
        std::vector<std::string> row = { first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last) };
        row.insert(row.end(), cells.begin(), cells.end());
        table.add(std::move(row));
        i = end;
    }
    std::string text = fmt::format("{}: {}, {} nodes, {} layers\n\n{}", summary.model, summary.architecture,
                                   summary.nodes, graph.layers.size(), table.text());
    if (!graph.outside.empty()) {
        text += "\nof no layer: " + linear_text(graph.outside) + "\n";
    }
    if (graph.unrecognised.empty()) {
        return text + "\nunrecognised: nothing\n";
    }
    text += fmt::format("\nunrecognised, left alone: {}\n", graph.unrecognised.size());
    for (const auto & node : graph.unrecognised) {
        text += fmt::format("  {} ({}): {}\n", node.name, node.op, node.why);
    }
    return text;
}

} // namespace cascade::report
