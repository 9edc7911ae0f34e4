// Windows and answers of an evaluation, as a later run goes on with them: right to the bit, or refused.
#include "report/eval_json.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

namespace cascade::report {

namespace {

using namespace evaluate;
using nlohmann::json;

// JSON has no infinity.
template <typename Number>
json exact(Number value) {
    if (std::isinf(value)) {
        return value > 0 ? "inf" : "-inf";
    }
    if (std::isnan(value)) {
        return nullptr;
    }
    if constexpr (std::is_same_v<Number, float>) {
        // A float's own digits are half as many as those of the double that it is. Read as a double, they all but
        // always come back as the same float.
        const double shorter = std::stod(fmt::format("{}", value));
        const bool in_range = std::fabs(shorter) <= static_cast<double>(std::numeric_limits<float>::max());
        return in_range && static_cast<float>(shorter) == value ? shorter : static_cast<double>(value);
    }
    return value;
}

template <typename Number>
Number exact_from(const json & source) {
    if (source.is_null()) {
        return std::numeric_limits<Number>::quiet_NaN();
    }
    if (source.is_string()) {
        if (source != "inf" && source != "-inf") {
            throw std::runtime_error("text instead of a number");
        }
        return source == "inf" ? std::numeric_limits<Number>::infinity() : -std::numeric_limits<Number>::infinity();
    }
    if (!source.is_number()) {
        throw std::runtime_error("not a number");
    }
    const auto value = source.get<double>();
    if (std::fabs(value) > static_cast<double>(std::numeric_limits<Number>::max())) {
        throw std::runtime_error("a number out of range");
    }
    return static_cast<Number>(value);
}

json floats_json(const std::vector<float> & values) {
    json list = json::array();
    for (const float value : values) {
        list.push_back(exact(value));
    }
    return list;
}

const json & array_at(const json & object, const char * name) {
    const json & found = object.at(name);
    if (!found.is_array()) {
        throw std::runtime_error(fmt::format("'{}' is no list", name));
    }
    return found;
}

std::vector<float> floats_at(const json & object, const char * name, size_t count) {
    const json & source = array_at(object, name);
    if (source.size() != count) {
        throw std::runtime_error(fmt::format("'{}' is of another length", name));
    }
    std::vector<float> values;
    values.reserve(count);
    for (const json & one : source) {
        values.push_back(exact_from<float>(one));
    }
    return values;
}

// The library would turn any number into an integer.
template <typename Integer>
Integer integer_from(const json & source) {
    if (!source.is_number_integer()) {
        throw std::runtime_error("not an integer");
    }
    const auto value = source.get<int64_t>();
    if (value < std::numeric_limits<Integer>::min() || value > std::numeric_limits<Integer>::max()) {
        throw std::runtime_error("an integer out of range");
    }
    return static_cast<Integer>(value);
}

// Yes and no as "1101": a tenth of a list's length.
std::string flags_json(const std::vector<uint8_t> & flags) {
    std::string text;
    for (const uint8_t flag : flags) {
        text += flag != 0 ? '1' : '0';
    }
    return text;
}

std::vector<uint8_t> flags_at(const json & object, const char * name, size_t count) {
    const auto text = object.at(name).get<std::string>();
    if (text.size() != count || text.find_first_not_of("01") != std::string::npos) {
        throw std::runtime_error(fmt::format("'{}' is not as many times 0 or 1", name));
    }
    std::vector<uint8_t> flags;
    flags.reserve(count);
    for (const char c : text) {
        flags.push_back(c == '1' ? 1 : 0);
    }
    return flags;
}

json method_window_json(const MethodWindow & method) {
    json layers = json::array();
    for (const LayerError & layer : method.layers) {
        layers.push_back({ exact(layer.difference), exact(layer.norm), layer.left_alone });
    }
    const Reads & reads = method.reads;
    return { { "label", method.label },
             { "kl", floats_json(method.scores.kl) },
             { "same_top", flags_json(method.scores.same_top) },
             { "nll", floats_json(method.scores.nll) },
             { "reads", { exact(reads.past), exact(reads.read), exact(reads.bytes), exact(reads.dense_bytes) } },
             { "layers", std::move(layers) },
             { "seconds", exact(method.seconds) } };
}

MethodWindow method_window_from(const json & source, size_t tokens) {
    MethodWindow method;
    source.at("label").get_to(method.label);
    method.scores = { floats_at(source, "kl", tokens), flags_at(source, "same_top", tokens),
                      floats_at(source, "nll", tokens) };
    const json & reads = array_at(source, "reads");
    method.reads = { exact_from<double>(reads.at(0)), exact_from<double>(reads.at(1)), exact_from<double>(reads.at(2)),
                     exact_from<double>(reads.at(3)) };
    for (const json & layer : array_at(source, "layers")) {
        method.layers.push_back(
            { exact_from<double>(layer.at(0)), exact_from<double>(layer.at(1)), layer.at(2).get<bool>() });
    }
    method.seconds = exact_from<double>(source.at("seconds"));
    return method;
}

} // namespace

json eval_window_json(const Window & window) {
    json methods = json::array();
    for (const MethodWindow & method : window.methods) {
        methods.push_back(method_window_json(method));
    }
    return { { "index", window.index },
             { "dense_nll", floats_json(window.dense_nll) },
             { "dense_seconds", exact(window.dense_seconds) },
             { "methods", std::move(methods) } };
}

Window eval_window_from(const json & source) {
    Window window;
    window.index = integer_from<int64_t>(source.at("index"));
    const size_t tokens = array_at(source, "dense_nll").size();
    window.dense_nll = floats_at(source, "dense_nll", tokens);
    window.dense_seconds = exact_from<double>(source.at("dense_seconds"));
    for (const json & method : array_at(source, "methods")) {
        window.methods.push_back(method_window_from(method, tokens));
    }
    return window;
}

json answer_json(const Answer & answer) {
    return { { "task", answer.task },
             { "length", answer.length },
             { "depth", exact(answer.depth) },
             { "index", answer.index },
             { "tokens", answer.tokens },
             { "dense_right", answer.dense_right },
             { "dense_tokens_right", answer.dense_tokens_right },
             { "right", flags_json(answer.right) },
             { "tokens_right", answer.tokens_right } };
}

Answer answer_from(const json & source) {
    Answer answer;
    source.at("task").get_to(answer.task);
    answer.length = integer_from<int64_t>(source.at("length"));
    answer.depth = exact_from<double>(source.at("depth"));
    answer.index = integer_from<int64_t>(source.at("index"));
    answer.tokens = integer_from<int32_t>(source.at("tokens"));
    answer.dense_right = source.at("dense_right").get<bool>();
    answer.dense_tokens_right = integer_from<int32_t>(source.at("dense_tokens_right"));
    for (const json & count : array_at(source, "tokens_right")) {
        answer.tokens_right.push_back(integer_from<int32_t>(count));
    }
    answer.right = flags_at(source, "right", answer.tokens_right.size());
    return answer;
}

} // namespace cascade::report
