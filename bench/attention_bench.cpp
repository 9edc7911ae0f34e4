// The exact kernels beside the engine's own FLASH_ATTN_EXT, in turns on the same arrays; f16 cache, one KV head.
//   prefill/…   512 queries x 3 heads; GFLOP/s of the two products (4 x rows x columns x size), ours and the engine's
//   causal/…    the same with a causal mask, the queries being the last of the columns; only visible products count
//   decode/…    1 query x 3 heads; GB/s of cache read
//   peak        what one core multiplies and adds in float, and reads from memory
// Each figure is the median over iterations, `best` the best of them; `times` is that of the engine's time over ours,
// `low` and `high` its 10th and 90th percentile. With one thread times are the thread's own, otherwise those of the
// clock. `peak` is the share of the multiply-adds that as many threads can do, `stream`
// that of the rate at which a thread reads as much memory at best.
#include "attend/kernels/exact.h"
#include "fma_peak.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

#include <algorithm>
#include <barrier>
#include <benchmark/benchmark.h>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace cascade;
using namespace cascade::attend;

constexpr int64_t heads = 3;

// Of the thread where it works alone, so that others on the machine cost it no more than a share of the caches.
double now(int threads) {
    timespec time{};
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + (static_cast<double>(time.tv_nsec) / 1e9);
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// Of so many threads at the same time: two processors may be one core.
double peak_of(int threads) {
    static std::map<int, double> known;
    const auto found = known.find(threads);
    if (found != known.end()) {
        return found->second;
    }
    std::vector<double> rates(static_cast<size_t>(threads));
    std::vector<std::thread> others;
    others.reserve(rates.size());
    for (double & rate : rates) {
        others.emplace_back([&rate] { rate = fma_peak(300.0); });
    }
    for (std::thread & other : others) {
        other.join();
    }
    return known[threads] = std::accumulate(rates.begin(), rates.end(), 0.0);
}

// GB/s of a thread that only looks at every line of so many bytes, again and again, so that small ones come from a
// cache.
double read_rate(size_t bytes) {
    const std::vector<uint64_t> memory(bytes / sizeof(uint64_t), 1);
    double best = 0.0;
    for (int i = 0; i < 20; i++) {
        const double start = now(1);
        uint64_t sum = 0;
        for (size_t word = 0; word < memory.size(); word += 64 / sizeof(uint64_t)) {
            sum += memory[word];
        }
        benchmark::DoNotOptimize(sum);
        best = std::max(best, static_cast<double>(bytes) / (now(1) - start) / 1e9);
    }
    return best;
}

// The engine's op on arrays of its own.
class Engine {
  public:
    Engine(int64_t queries, int64_t columns, int64_t size, bool causal, int threads) {
        backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
        auto set_threads = reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_dev_backend_reg(ggml_backend_get_device(backend)), "ggml_backend_set_n_threads"));
        set_threads(backend, threads);
        context = ggml_init({ ggml_tensor_overhead() * 16 + ggml_graph_overhead(), nullptr, true });
        q = ggml_new_tensor_3d(context, GGML_TYPE_F32, size, queries, heads);
        k = ggml_new_tensor_3d(context, GGML_TYPE_F16, size, columns, 1);
        v = ggml_new_tensor_3d(context, GGML_TYPE_F16, size, columns, 1);
        mask = causal ? ggml_new_tensor_2d(context, GGML_TYPE_F16, columns, queries) : nullptr;
        scale = 1.0F / std::sqrt(static_cast<float>(size));
        out = ggml_flash_attn_ext(context, q, k, v, mask, scale, 0.0F, 0.0F);
        graph = ggml_new_graph(context);
        ggml_build_forward_expand(graph, out);
        buffer = ggml_backend_alloc_ctx_tensors(context, backend);
        fill();
    }
    ~Engine() {
        ggml_backend_buffer_free(buffer);
        ggml_free(context);
        ggml_backend_free(backend);
    }
    Engine(const Engine &) = delete;
    Engine & operator=(const Engine &) = delete;

    void run() { ggml_backend_graph_compute(backend, graph); }

    // The same op for ours, writing elsewhere.
    Attention attention(std::vector<float> & written) const {
        Attention a;
        a.queries = q->ne[1], a.tokens = k->ne[1], a.heads = heads, a.kv_heads = 1;
        a.key_size = a.value_size = q->ne[0];
        a.query = rows(q, Format::f32), a.key = rows(k, Format::f16), a.value = rows(v, Format::f16);
        if (mask != nullptr) {
            a.mask = rows(mask, Format::f16);
        }
        a.pre_scale = scale;
        written.resize(static_cast<size_t>(ggml_nelements(out)));
        a.out = reinterpret_cast<char *>(written.data());
        a.out_query_stride = out->nb[2], a.out_head_stride = out->nb[1], a.out_stream_stride = out->nb[3];
        return a;
    }

    // The largest difference of two outputs.
    double distance(const std::vector<float> & written) const {
        const auto * own = static_cast<const float *>(out->data);
        double largest = 0.0;
        for (size_t i = 0; i < written.size(); i++) {
            largest = std::max(largest, std::fabs(static_cast<double>(own[i]) - written[i]));
        }
        return largest;
    }

  private:
    static Rows rows(const ggml_tensor * tensor, Format format) {
        Rows r;
        r.base = static_cast<const char *>(tensor->data);
        r.row_stride = tensor->nb[1], r.head_stride = tensor->nb[2], r.stream_stride = tensor->nb[3];
        r.format = format;
        r.to_float = ggml_get_type_traits(tensor->type)->to_float;
        return r;
    }

    void fill() {
        std::mt19937 random(1);
        std::normal_distribution<float> normal;
        for (int64_t i = 0; i < ggml_nelements(q); i++) {
            static_cast<float *>(q->data)[i] = normal(random);
        }
        for (ggml_tensor * tensor : { k, v }) {
            for (int64_t i = 0; i < ggml_nelements(tensor); i++) {
                static_cast<ggml_fp16_t *>(tensor->data)[i] = ggml_fp32_to_fp16(normal(random));
            }
        }
        for (int64_t i = 0; mask != nullptr && i < ggml_nelements(mask); i++) {
            const bool visible = i % mask->ne[0] <= (i / mask->ne[0]) + mask->ne[0] - mask->ne[1];
            static_cast<ggml_fp16_t *>(mask->data)[i] =
                ggml_fp32_to_fp16(visible ? 0.0F : -std::numeric_limits<float>::infinity());
        }
    }

    ggml_backend_t backend;
    ggml_context * context;
    ggml_tensor *q, *k, *v, *mask, *out;
    ggml_cgraph * graph;
    ggml_backend_buffer_t buffer;
    float scale;
};

// Our op on the caller's thread and perhaps others that wait in between, as the engine's do.
class Ours {
  public:
    Ours(const Attention & attention, int thread_count) : a(attention), parts(thread_count), gate(thread_count) {
        scratch.resize(static_cast<size_t>(parts));
        threads.reserve(static_cast<size_t>(parts));
        for (int part = 1; part < parts; part++) {
            threads.emplace_back([this, part] {
                for (gate.arrive_and_wait(); !over; gate.arrive_and_wait()) {
                    attend_exact(a, part, parts, shared, scratch[static_cast<size_t>(part)]);
                    gate.arrive_and_wait();
                }
            });
        }
    }
    ~Ours() {
        over = true;
        gate.arrive_and_wait();
        for (std::thread & thread : threads) {
            thread.join();
        }
    }
    Ours(const Ours &) = delete;
    Ours & operator=(const Ours &) = delete;

    void run() {
        gate.arrive_and_wait();
        attend_exact(a, 0, parts, shared, scratch[0]);
        gate.arrive_and_wait();
    }

  private:
    Attention a;
    int parts;
    bool over = false;
    std::barrier<> gate; // of the system: who waits leaves its processor to the engine
    ExactShared shared;
    std::vector<ExactScratch> scratch;
    std::vector<std::thread> threads;
};

// `work` is what both do, in the units of the figures times 1e9.
void in_turns(benchmark::State & state, int64_t queries, bool causal, double work, bool flops) {
    const int64_t columns = state.range(0);
    const auto threads = static_cast<int>(state.range(2));
    Engine engine(queries, columns, state.range(1), causal, threads);
    std::vector<float> written;
    Ours mine(engine.attention(written), threads);
    std::vector<double> ours;
    std::vector<double> theirs;
    std::vector<double> ratios;
    const auto reserved = static_cast<size_t>(state.max_iterations);
    ours.reserve(reserved), theirs.reserve(reserved), ratios.reserve(reserved);
    for (auto _ : state) {
        mine.run(); // memory is there, threads are awake
        const double our_start = now(threads);
        mine.run();
        ours.push_back(now(threads) - our_start);
        engine.run();
        const double start = now(threads);
        engine.run();
        theirs.push_back(now(threads) - start);
        ratios.push_back(theirs.back() / ours.back());
        state.SetIterationTime(ours.back());
    }
    const double rate = work / quantile(ours, 0.5) / 1e9;
    state.counters[flops ? "GFLOPs" : "GBs"] = rate;
    state.counters[flops ? "engine_GFLOPs" : "engine_GBs"] = work / quantile(theirs, 0.5) / 1e9;
    state.counters["best"] = work / quantile(ours, 0.0) / 1e9;
    state.counters["engine_best"] = work / quantile(theirs, 0.0) / 1e9;
    if (flops) {
        state.counters["peak"] = rate / peak_of(threads);
    } else if (threads == 1) {
        state.counters["stream"] = rate / read_rate(static_cast<size_t>(work));
    }
    state.counters["times"] = quantile(ratios, 0.5);
    state.counters["low"] = quantile(ratios, 0.1);
    state.counters["high"] = quantile(ratios, 0.9);
    state.counters["distance"] = engine.distance(written);
}

constexpr int64_t prefill_queries = 512;

void prefill(benchmark::State & state) {
    const auto products = static_cast<double>(heads * prefill_queries * state.range(0));
    in_turns(state, prefill_queries, false, 4.0 * products * static_cast<double>(state.range(1)), true);
}

void causal(benchmark::State & state) {
    const double hidden = static_cast<double>(heads * prefill_queries * (prefill_queries - 1)) / 2.0;
    const double products = static_cast<double>(heads * prefill_queries * state.range(0)) - hidden;
    in_turns(state, prefill_queries, true, 4.0 * products * static_cast<double>(state.range(1)), true);
}

void decode(benchmark::State & state) {
    in_turns(state, 1, false, 2.0 * 2.0 * static_cast<double>(state.range(0) * state.range(1)), false);
}

void peak(benchmark::State & state) {
    for (auto _ : state) {
        benchmark::DoNotOptimize(peak_of(1));
    }
    state.counters["GFLOPs"] = peak_of(1);
    state.counters["GFLOPs_of_two"] = peak_of(2);
    state.counters["GBs_2MB"] = read_rate(size_t(2) << 20U);
    state.counters["GBs_256MB"] = read_rate(size_t(256) << 20U);
}

void shapes(benchmark::internal::Benchmark * bench) {
    bench->ArgNames({ "columns", "size", "threads" })->ArgsProduct({ { 1024, 4096 }, { 64, 128 }, { 1, 2 } });
    bench->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(15);
}

BENCHMARK(peak)->Iterations(1);
BENCHMARK(prefill)->Apply(shapes);
BENCHMARK(causal)->Apply(shapes);
BENCHMARK(decode)
    ->ArgNames({ "columns", "size", "threads" })
    ->ArgsProduct({ { 8192, 131072 }, { 64, 128 }, { 1, 2 } })
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(31);

} // namespace

int main(int argc, char ** argv) {
    ggml_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    ggml_backend_load_all_from_path(CASCADE_ENGINE_LIBRARIES);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
