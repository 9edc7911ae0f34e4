// What covers cost, as ratios of things measured in turns:
//   leader/…    multiply-adds that leader needs a second, against a bare library GEMM of the same shape (T x r x d)
//   linked/…    linked inheritance at 10 % turnover against leader from scratch on the same rows
//   growth/…    time for each token at fixed r, as T grows: flat where the cost is linear
// Each figure is the median over iterations; `low` and `high` are the 10th and 90th percentile of the ratio.
#include "cascade/cover.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdlib>
#include <dnnl.h>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace cascade;

// As many as the library takes: all, or what OMP_NUM_THREADS says.
const int threads = [] {
    const char * wanted = std::getenv("OMP_NUM_THREADS");
    return wanted != nullptr ? std::max(1, std::atoi(wanted))
                             : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}();

// Rows with a known cover: a new direction every tokens / leaders tokens, all others near an earlier one.
class Rows {
  public:
    Rows(int64_t tokens, int64_t size, int64_t leaders)
        : data(static_cast<size_t>(tokens * size)), view{ data.data(), tokens, size, size }, every(tokens / leaders) {
        for (int64_t t = 0; t < tokens; t++) {
            t % every == 0 ? new_direction(t) : copy_with_noise(t, random_leader(t));
        }
    }
    Rows(const Rows &) = delete;
    Rows & operator=(const Rows &) = delete;

    TokenRows rows() const { return view; }

    // A layer later: one in twenty leaders falls to an earlier one and takes its members along, as many others get
    // directions of their own.
    void change_a_tenth(const Cover & cover) {
        std::vector<int32_t> fallen_to(static_cast<size_t>(view.tokens), -1);
        for (size_t i = 1; i < cover.representatives.size(); i++) {
            if (random() % 20 == 0) {
                const int32_t fallen = cover.representatives[i];
                fallen_to[static_cast<size_t>(fallen)] = cover.representatives[random() % i];
                const int64_t fresh = fallen + 1;
                if (fresh < view.tokens && fresh % every != 0) {
                    new_direction(fresh);
                }
            }
        }
        for (int64_t t = 0; t < view.tokens; t++) {
            const int32_t target = fallen_to[static_cast<size_t>(cover.assigned[static_cast<size_t>(t)])];
            const bool fresh = t > 0 && fallen_to[static_cast<size_t>(t - 1)] >= 0;
            if (target >= 0 && target < t && !fresh) {
                copy_with_noise(t, target);
            }
        }
    }

  private:
    float * row(int64_t token) { return data.data() + (token * view.size); }
    int64_t random_leader(int64_t token) {
        return static_cast<int64_t>(random() % static_cast<uint64_t>((token / every) + 1)) * every;
    }
    void new_direction(int64_t token) {
        std::generate_n(row(token), view.size, [&] { return normal(random); });
    }
    void copy_with_noise(int64_t token, int64_t from) {
        for (int64_t k = 0; k < view.size; k++) {
            row(token)[k] = row(from)[k] + (0.2F * normal(random));
        }
    }

    std::vector<float> data;
    TokenRows view;
    int64_t every;
    std::mt19937_64 random{ 1 };
    std::normal_distribution<float> normal;
};

template <typename Work>
double seconds(const Work & work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double percentile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

void report(benchmark::State & state, const char * name, const std::vector<double> & ratios) {
    state.counters[name] = percentile(ratios, 0.5);
    state.counters["low"] = percentile(ratios, 0.1);
    state.counters["high"] = percentile(ratios, 0.9);
}

// Pairs of a token and an earlier representative: what any leader must multiply.
double needed_multiply_adds(const Cover & cover, int64_t size) {
    double pairs = 0;
    for (const int32_t leader : cover.representatives) {
        pairs += static_cast<double>(cover.tokens() - 1 - leader);
    }
    return pairs * static_cast<double>(size);
}

void leader_against_gemm(benchmark::State & state) {
    const int64_t tokens = state.range(0);
    const int64_t size = state.range(1);
    const int64_t leaders = tokens / state.range(2);
    const Rows made(tokens, size, leaders);
    const TokenRows rows = made.rows();
    Team team(threads);
    Cover cover = leader_cover(rows, {}, team);
    const double needed = needed_multiply_adds(cover, size);
    std::vector<float> products(static_cast<size_t>(tokens * leaders));
    std::vector<double> ratios;
    for ([[maybe_unused]] auto _ : state) {
        const double gemm = seconds([&] {
            dnnl_sgemm('N', 'T', tokens, leaders, size, 1.0F, rows.data, size, rows.data, size, 0.0F, products.data(),
                       leaders);
        });
        const double ours = seconds([&] { cover = leader_cover(rows, {}, team); });
        state.SetIterationTime(ours);
        const double gemm_rate = static_cast<double>(tokens * leaders * size) / gemm;
        ratios.push_back(needed / ours / gemm_rate);
    }
    state.counters["r"] = static_cast<double>(cover.size());
    report(state, "rate_of_gemm", ratios);
}

void linked_against_leader(benchmark::State & state) {
    Rows made(state.range(0), state.range(1), state.range(0) / state.range(2));
    Team team(threads);
    const Cover below = leader_cover(made.rows(), {}, team);
    made.change_a_tenth(below);
    Inherited linked;
    std::vector<double> ratios;
    for ([[maybe_unused]] auto _ : state) {
        const double scratch = seconds([&] { benchmark::DoNotOptimize(leader_cover(made.rows(), {}, team)); });
        const double ours = seconds([&] { linked = inherit_cover(made.rows(), below, InheritForm::linked, {}, team); });
        state.SetIterationTime(ours);
        ratios.push_back(scratch / ours);
    }
    state.counters["turnover"] = linked.turnover();
    report(state, "times_faster", ratios);
}

void growth_of_leader(benchmark::State & state) {
    const Rows made(state.range(0), 192, 256);
    Team team(threads);
    for ([[maybe_unused]] auto _ : state) {
        state.SetIterationTime(seconds([&] { benchmark::DoNotOptimize(leader_cover(made.rows(), {}, team)); }));
    }
    state.counters["ns_per_token"] =
        benchmark::Counter(static_cast<double>(state.range(0)) * 1e-9,
                           benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void shapes(benchmark::internal::Benchmark * bench) {
    bench->ArgNames({ "T", "d", "T_over_r" });
    for (const int64_t size : { 192, 576, 4096 }) {
        for (const int64_t tokens_for_each : { 16, 4 }) {
            bench->Args({ 8192, size, tokens_for_each });
        }
    }
    bench->UseManualTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(leader_against_gemm)->Name("leader")->Apply(shapes)->Iterations(15);
BENCHMARK(linked_against_leader)->Name("linked")->Apply(shapes)->Iterations(9);
BENCHMARK(growth_of_leader)
    ->Name("growth")
    ->ArgName("T")
    ->RangeMultiplier(4)
    ->Range(1024, 65536)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

} // namespace

// The library's threads must sleep while ours work; its OpenMP reads that when the program starts.
int main(int argc, char ** argv) {
    if (setenv("OMP_WAIT_POLICY", "passive", 0) == 0 && std::getenv("CASCADE_BENCH_AGAIN") == nullptr) {
        setenv("CASCADE_BENCH_AGAIN", "1", 1);
        execv("/proc/self/exe", argv);
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
