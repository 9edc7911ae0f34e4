// What mode exact costs, at the best resolution a noisy machine allows: in one process, over one copy of the weights, a
// bare context, a second bare one (the A/A control) and one with the plugin take turns at every batch.
//
//   overhead MODEL [prompt rounds] [token rounds] [threads]
//
// pp512 goes in batches of 64 tokens, so that turns are short beside the machine's own ups and downs; a batch's fixed
// cost, which is where the plugin's could be, then weighs eight times as much as in one batch of 512.
//
// Prints for pp512 and tg32 the median over rounds of ours / bare in speed, its 95 % interval (bootstrap over rounds),
// and the same for the control: a ratio inside the control's interval can't be told from 1.
#include "ggml-backend.h"
#include "llama-cpp.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <vector>

namespace {

constexpr int contexts = 3; // bare, bare again, ours
constexpr int prompt_tokens = 512;
constexpr int batch_tokens = 64;
constexpr int generated_tokens = 32;

using Seconds = std::array<double, contexts>;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

llama_context_ptr new_context(llama_model * model, int threads) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 2 * prompt_tokens;
    params.n_batch = params.n_ubatch = batch_tokens;
    params.n_threads = params.n_threads_batch = threads;
    return llama_context_ptr(llama_init_from_model(model, params));
}

double decode(llama_context * context, std::vector<llama_token> & tokens) {
    const auto start = std::chrono::steady_clock::now();
    if (llama_decode(context, llama_batch_get_one(tokens.data(), static_cast<int32_t>(tokens.size()))) != 0) {
        std::fprintf(stderr, "overhead: decode failed\n");
        std::exit(1);
    }
    llama_synchronize(context);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One round: every context does the same work, in an order that turns from step to step.
Seconds one_round(const std::array<llama_context_ptr, contexts> & all, int round, int steps, int tokens) {
    Seconds spent = {};
    std::vector<llama_token> batch(static_cast<size_t>(tokens), 1);
    for (const llama_context_ptr & context : all) {
        llama_memory_clear(llama_get_memory(context.get()), true);
    }
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < contexts; i++) {
            const auto turn = static_cast<size_t>((i + step + round) % contexts);
            spent[turn] += decode(all[turn].get(), batch);
        }
    }
    return spent;
}

void report(const char * name, const std::vector<Seconds> & rounds) {
    std::mt19937 random(1);
    for (const size_t which : { size_t(2), size_t(1) }) {
        std::vector<double> ratios;
        for (const Seconds & seconds : rounds) {
            ratios.push_back(seconds[0] / seconds[which]);
        }
        std::vector<double> medians;
        std::uniform_int_distribution<size_t> pick(0, ratios.size() - 1);
        for (int i = 0; i < 4000; i++) {
            std::vector<double> sample(ratios.size());
            std::generate(sample.begin(), sample.end(), [&] { return ratios[pick(random)]; });
            medians.push_back(median(sample));
        }
        std::sort(medians.begin(), medians.end());
        std::printf("%-6s %-13s %7.4f   %7.4f .. %.4f   %zu rounds\n", name, which == 2 ? "ours / bare" : "bare / bare",
                    median(ratios), medians[medians.size() / 40], medians[medians.size() - 1 - medians.size() / 40],
                    ratios.size());
    }
}

} // namespace

int main(int argc, char ** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: overhead MODEL [prompt rounds] [token rounds] [threads]\n");
        return 2;
    }
    const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
    const int threads = number(4, 2);
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    const auto here = std::filesystem::canonical("/proc/self/exe").parent_path();
    ggml_backend_load_all_from_path(here.c_str());
    llama_backend_init();
    const llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    if (!model) {
        std::fprintf(stderr, "overhead: can't load %s\n", argv[1]);
        return 1;
    }
    std::array<llama_context_ptr, contexts> all = { new_context(model.get(), threads),
                                                    new_context(model.get(), threads), nullptr };
    if (ggml_backend_load((here / "libggml-cascade.so").c_str()) == nullptr) {
        return 1;
    }
    all[2] = new_context(model.get(), threads); // contexts made from now on have the plugin

    std::vector<Seconds> prompts;
    std::vector<Seconds> tokens;
    constexpr int batches = prompt_tokens / batch_tokens;
    one_round(all, 0, batches, batch_tokens); // warm-up
    for (int round = 0; round < number(2, 24); round++) {
        prompts.push_back(one_round(all, round, batches, batch_tokens));
    }
    for (int round = 0; round < number(3, 60); round++) {
        tokens.push_back(one_round(all, round, generated_tokens, 1));
    }
    std::printf("test   speed          median   95 %% interval\n");
    report("pp512", prompts);
    report("tg32", tokens);
    return 0;
}
