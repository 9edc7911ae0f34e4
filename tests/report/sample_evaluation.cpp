// Writes a made-up evaluation, as `cascade eval` would, for tests of its page.
// Usage: sample_evaluation full|leaderboard|small|hostile FILE.json
//
// The figures are inventions with the shape of real ones: heavy tails, passages that are hard for every method, less
// loss where more is read. small leaves out all that may be missing; hostile has markup in every name, and values of
// the wrong kind.
#include "report/eval_json.h"

#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace cascade;
using nlohmann::json;

constexpr int64_t layer_count = 30;
constexpr size_t scored = 1024;
const std::string markup = "</script><script>throw 'out'</script><img src=x onerror=\"throw 'out'\"><!--\u2028${1}";

struct Rule {
    std::string label;
    double share;
    double bytes;
    double kl;
    double found; // of what retrieval asks for
};

std::vector<Rule> rules() {
    return { { "fa-off", 0.0, 0.0, 0.0034, 0.99 },
             { "joint:0.05", 0.058, 0.19, 0.0081, 0.97 },
             { "joint:0.1", 0.109, 0.24, 0.0042, 0.98 },
             { "joint:0.2", 0.21, 0.34, 0.0036, 0.99 },
             { "joint:0.1,rest=drop", 0.08, 0.21, 0.09, 0.7 },
             { "refine:0.1", 0.12, 0.13, 0.031, 0.5 },
             { "refine:0.2", 0.21, 0.22, 0.018, 0.72 },
             { "refine:0.3", 0.30, 0.31, 0.0125, 0.85 },
             { "oracle:0.05", 0.05, 1.05, 0.012, 0.97 },
             { "oracle:0.25", 0.25, 1.25, 0.0060, 0.99 },
             { "sampled:0.25", 0.25, 0.30, 0.024, 0.6 },
             { "snapkv:0.25", 0.25, 0.26, 0.036, 0.2 },
             { "blocks:0.25", 0.25, 0.31, 0.037, 0.45 },
             { "quest:0.1", 0.10, 0.22, 0.11, 0.3 },
             { "quest:0.25", 0.25, 0.37, 0.046, 0.5 },
             { "quest:0.5", 0.50, 0.62, 0.015, 0.8 },
             { "streaming:0.25", 0.25, 0.25, 0.043, 0.2 },
             { "random:0.25", 0.25, 0.25, 0.059, 0.22 } };
}

class Inventor {
  public:
    explicit Inventor(uint32_t seed) : generator(seed) {}

    double normal() { return std::normal_distribution<double>()(generator); }
    bool chance(double probability) { return std::uniform_real_distribution<double>()(generator) < probability; }

    evaluate::MethodWindow method(const Rule & rule, const evaluate::Window & window,
                                  const std::vector<double> & passage) {
        evaluate::MethodWindow result;
        result.label = rule.label;
        for (size_t i = 0; i < scored; i++) {
            const double kl = rule.kl * std::exp((1.6 * normal()) - 1.6 + passage[i / 64]);
            result.scores.kl.push_back(static_cast<float>(kl));
            result.scores.same_top.push_back(chance(1.0 - std::min(0.9, 1.3 * std::sqrt(kl))) ? 1 : 0);
            result.scores.nll.push_back(window.dense_nll[i] +
                                        static_cast<float>((0.6 * kl) + (0.5 * std::sqrt(kl) * normal())));
        }
        const bool noise = rule.share == 0.0;
        result.reads = noise ? evaluate::Reads{} : evaluate::Reads{ 1e6, 1e6 * rule.share, 1e9 * rule.bytes, 1e9 };
        for (int64_t layer = 0; layer < layer_count; layer++) {
            const double error = 0.8 * std::sqrt(rule.kl) * (1.3 - std::cos(0.25 * static_cast<double>(layer))) *
                                 std::exp(0.1 * normal());
            const bool left_alone = noise || layer % 6 == 5;
            result.layers.push_back({ error * error, 1.0, left_alone });
        }
        result.seconds = 8.0 + (40.0 * rule.share);
        return result;
    }

    evaluate::Window window(int64_t index) {
        evaluate::Window result;
        result.index = index;
        result.dense_seconds = 9.5;
        for (size_t i = 0; i < scored; i++) {
            result.dense_nll.push_back(static_cast<float>(std::exp((0.9 * normal()) + 0.6)));
        }
        std::vector<double> passage(scored / 64);
        for (double & level : passage) {
            level = 0.6 * normal();
        }
        for (const Rule & rule : rules()) {
            result.methods.push_back(method(rule, result, passage));
        }
        return result;
    }

    evaluate::Answer answer(const std::string & task, int64_t length, int64_t index, double dense) {
        evaluate::Answer result{ task, length, static_cast<double>(index) / 5.0, index, 5, chance(dense), 0, {}, {} };
        result.dense_tokens_right = result.dense_right ? 5 : 2;
        for (const Rule & rule : rules()) {
            const double found = rule.label.starts_with("streaming") && result.depth > 0.7 ? 1.0 : rule.found;
            result.right.push_back(result.dense_right && chance(found) ? 1 : 0);
            result.tokens_right.push_back(result.right.back() != 0 ? 5 : 2);
        }
        return result;
    }

  private:
    std::mt19937 generator;
};

report::EvalInfo made_info() {
    report::EvalInfo info;
    info.model = "smollm2-135m-instruct-q4_1.gguf";
    info.architecture = "llama";
    info.weights = "Q4_1";
    info.text = "wiki.test.raw";
    info.version = "0.1.0";
    info.date = "2026-11-15";
    info.machine = "2 cores of a made-up processor";
    info.isa = "avx512";
    info.command = "cascade eval -m smollm2-135m-instruct-q4_1.gguf -f wiki.test.raw -c 2048 --windows 8";
    info.cache_k = info.cache_v = "f16";
    info.tokens = 2048;
    info.chunk = 64;
    info.window = 128;
    info.scored_from = 1024;
    info.seed = 1;
    info.windows = 8;
    return info;
}

json full(bool leaderboard) {
    Inventor inventor(7);
    evaluate::Evaluation evaluation;
    for (const Rule & rule : rules()) {
        evaluation.labels.push_back(rule.label);
    }
    for (int64_t i = 0; i < 8; i++) {
        evaluation.windows.push_back(inventor.window(i));
    }
    for (const char * task : { "passkey", "needle", "key-value", "last-mention" }) {
        for (const int64_t length : { 1024, 2048 }) {
            const bool hard =
                std::string(task) == "last-mention" || (std::string(task) == "key-value" && length == 2048);
            for (int64_t i = 0; i < 6; i++) {
                evaluation.answers.push_back(inventor.answer(task, length, i, hard ? 0.4 : 1.0));
            }
        }
    }
    report::EvalInfo info = made_info();
    info.leaderboard = leaderboard;
    return report::eval_json(info, evaluation);
}

json small() {
    evaluate::Window window;
    window.dense_nll = { 2.0F, 3.0F, 2.5F };
    evaluate::MethodWindow method;
    method.label = "joint:0.1";
    method.scores = { { 0.01F, 0.02F, 0.0F }, { 1, 0, 1 }, { 2.0F, 3.1F, 2.5F } };
    method.reads = { 10, 2, 3, 10 };
    window.methods.push_back(method);
    report::EvalInfo info;
    info.model = "tiny.gguf";
    info.windows = 4;
    info.complete = false;
    return report::eval_json(info, { { "joint:0.1" }, { window }, {} });
}

json hostile() {
    const json method = { { "name", markup },
                          { "kl", 0.02 },
                          { "kl_interval", { 0.01, nullptr } },
                          { "share", 0.2 },
                          { "bytes_share", markup },
                          { "layer_error", { 0.1, markup, nullptr } },
                          { "ahead_of", { markup } },
                          { "frontier", true },
                          { "top1", markup } };
    json named = method;
    named.update({ { "name", 7 }, { "kl", 0 }, { "share", 0.0 }, { "layer_error", markup } });
    const json task = { { "task", markup },
                        { "length", markup },
                        { "dense", markup },
                        { "out_of_reach", true },
                        { "methods", { { markup, markup } } } };
    return { { "kind", "evaluation" },
             { "model", markup },
             { "architecture", markup },
             { "weights", { 1, 2 } },
             { "text", markup },
             { "command", markup },
             { "date", markup },
             { "complete", false },
             { "windows", markup },
             { "tokens", markup },
             { "dense", markup },
             { "noise", { { "kl", markup } } },
             { "methods", { method, named, nullptr, markup } },
             { "retrieval", { { "tasks", { task, nullptr, markup } }, { "by_depth", { markup, task } } } } };
}

} // namespace

int main(int argc, char ** argv) {
    const std::string which = argc == 3 ? argv[1] : "";
    if (which != "full" && which != "leaderboard" && which != "small" && which != "hostile") {
        std::fprintf(stderr, "usage: sample_evaluation full|leaderboard|small|hostile FILE.json\n");
        return 2;
    }
    try {
        std::ofstream file(argv[2], std::ios::binary);
        file << (which == "small" ? small() : which == "hostile" ? hostile() : full(which == "leaderboard")).dump(1);
        return file.flush() ? 0 : 1;
    } catch (const std::exception & error) {
        std::fprintf(stderr, "sample_evaluation: %s\n", error.what());
        return 1;
    }
}
