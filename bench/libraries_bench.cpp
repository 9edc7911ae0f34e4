// What libraries of small matrix products could give attention: only the two products of its tiles, 96 rows x 128
// columns at a time, over 3 x 512 rows; no softmax, no mask, no conversion. An upper bound beside attention_bench.
//   xsmm_f32, xsmm_bf16   libxsmm's kernels for the tile; bf16 products are sums in f32 of rounded values, not exact
//   dnnl_f32              oneDNN's sgemm on tiles
//   dnnl_whole_f32        the same on all rows and columns at once
//   dnnl_bf16             oneDNN's matmul in bf16 on all rows and columns at once
// GFLOP/s of one thread by its own clock; `right` says that the products were. AMX stays off: not all machines that
// report it have it.
#include "fma_peak.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <dnnl.hpp>
#include <libxsmm.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr int rows = 96;
constexpr int columns = 128;
constexpr int all_rows = 3 * 512;

double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + (static_cast<double>(time.tv_nsec) / 1e9);
}

// A bf16 one and a half.
constexpr uint16_t brain = 0x3FC0;
constexpr float value = 1.5F;

template <class Multiply>
void measure(benchmark::State & state, const Multiply & multiply) {
    const double work = 4.0 * all_rows * static_cast<double>(state.range(0) * state.range(1));
    std::vector<double> times;
    times.reserve(static_cast<size_t>(state.max_iterations));
    multiply();
    for (auto _ : state) {
        const double start = now();
        multiply();
        times.push_back(now() - start);
        state.SetIterationTime(times.back());
    }
    std::sort(times.begin(), times.end());
    static const double peak = fma_peak(300.0);
    state.counters["GFLOPs"] = work / times[times.size() / 2] / 1e9;
    state.counters["best"] = work / times.front() / 1e9;
    state.counters["peak"] = state.counters["GFLOPs"] / peak;
}

// Calls tile(row, column) for every tile, columns outside.
template <class Tile>
void for_tiles(int64_t count, const Tile & tile) {
    for (int64_t column = 0; column < count; column += columns) {
        for (int64_t row = 0; row < all_rows; row += rows) {
            tile(row, column);
        }
    }
}

// In and out of both products. Keys stand in tiles of [size][columns], values in rows.
template <class T>
struct Arrays {
    Arrays(int64_t count, int64_t size, T one)
        : queries(static_cast<size_t>(all_rows * size), one), keys(static_cast<size_t>(count * size), one),
          values(static_cast<size_t>(count * size), one), weights(static_cast<size_t>(rows * columns), one),
          scores(static_cast<size_t>(rows * columns)), out(static_cast<size_t>(all_rows * size)) {}
    std::vector<T> queries, keys, values, weights;
    std::vector<float> scores, out;

    double right(int64_t size) const { return scores[0] == value * value * static_cast<float>(size) ? 1.0 : 0.0; }
};

void xsmm_f32(benchmark::State & state) {
    const auto size = static_cast<int>(state.range(1));
    Arrays<float> a(state.range(0), size, value);
    // the library's columns are our rows
    const float one = 1.0F;
    const float zero = 0.0F;
    const libxsmm_smmfunction scores =
        libxsmm_smmdispatch(columns, rows, size, nullptr, nullptr, nullptr, &one, &zero, nullptr, nullptr);
    const libxsmm_smmfunction out =
        libxsmm_smmdispatch(size, rows, columns, nullptr, nullptr, nullptr, &one, &one, nullptr, nullptr);
    if (scores == nullptr || out == nullptr) {
        state.SkipWithError("no kernel");
        return;
    }
    measure(state, [&] {
        for_tiles(state.range(0), [&](int64_t row, int64_t column) {
            scores(a.keys.data() + (column * size), a.queries.data() + (row * size), a.scores.data());
            out(a.values.data() + (column * size), a.weights.data(), a.out.data() + (row * size));
        });
    });
    state.counters["right"] = a.right(size);
}

void xsmm_bf16(benchmark::State & state) {
    const auto size = static_cast<int>(state.range(1));
    Arrays<uint16_t> a(state.range(0), size, brain);
    const float one = 1.0F;
    const float zero = 0.0F;
    const libxsmm_bsmmfunction scores =
        libxsmm_bsmmdispatch(columns, rows, size, nullptr, nullptr, nullptr, &one, &zero, nullptr, nullptr);
    const libxsmm_bsmmfunction out =
        libxsmm_bsmmdispatch(size, rows, columns, nullptr, nullptr, nullptr, &one, &one, nullptr, nullptr);
    if (scores == nullptr || out == nullptr) {
        state.SkipWithError("no kernel");
        return;
    }
    measure(state, [&] {
        for_tiles(state.range(0), [&](int64_t row, int64_t column) {
            scores(a.keys.data() + (column * size), a.queries.data() + (row * size), a.scores.data());
            out(a.values.data() + (column * size), a.weights.data(), a.out.data() + (row * size));
        });
    });
    state.counters["right"] = a.right(size);
    state.SetLabel(libxsmm_get_target_arch());
}

void dnnl_f32(benchmark::State & state) {
    const int64_t size = state.range(1);
    Arrays<float> a(state.range(0), size, value);
    measure(state, [&] {
        for_tiles(state.range(0), [&](int64_t row, int64_t column) {
            dnnl_sgemm('N', 'N', rows, columns, size, 1.0F, a.queries.data() + (row * size), size,
                       a.keys.data() + (column * size), columns, 0.0F, a.scores.data(), columns);
            dnnl_sgemm('N', 'N', rows, size, columns, 1.0F, a.weights.data(), columns,
                       a.values.data() + (column * size), size, 1.0F, a.out.data() + (row * size), size);
        });
    });
    state.counters["right"] = a.right(size);
}

void dnnl_whole_f32(benchmark::State & state) {
    const int64_t size = state.range(1);
    const int64_t count = state.range(0);
    Arrays<float> a(count, size, value);
    a.scores.resize(static_cast<size_t>(all_rows * count));
    measure(state, [&] {
        dnnl_sgemm('N', 'N', all_rows, count, size, 1.0F, a.queries.data(), size, a.keys.data(), count, 0.0F,
                   a.scores.data(), count);
        dnnl_sgemm('N', 'N', all_rows, size, count, 1.0F, a.scores.data(), count, a.values.data(), size, 0.0F,
                   a.out.data(), size);
    });
    state.counters["right"] = a.right(size);
}

void dnnl_bf16(benchmark::State & state) {
    using namespace dnnl;
    const int64_t size = state.range(1);
    const int64_t count = state.range(0);
    Arrays<uint16_t> a(count, size, brain);
    a.scores.resize(static_cast<size_t>(all_rows * count));
    a.weights.resize(static_cast<size_t>(all_rows * count), brain);
    engine cpu(engine::kind::cpu, 0);
    stream queue(cpu);
    struct Product {
        matmul multiply;
        std::unordered_map<int, memory> arguments;
    };
    const auto product = [&](int64_t m, int64_t n, int64_t k, void * left, void * right, void * result) {
        const memory::desc left_desc({ m, k }, memory::data_type::bf16, memory::format_tag::ab);
        const memory::desc plain_desc({ k, n }, memory::data_type::bf16, memory::format_tag::ab);
        const memory::desc right_desc({ k, n }, memory::data_type::bf16, memory::format_tag::any);
        const memory::desc out_desc({ m, n }, memory::data_type::f32, memory::format_tag::ab);
        const matmul::primitive_desc chosen(matmul::desc(left_desc, right_desc, out_desc), cpu);
        memory packed(chosen.weights_desc(), cpu);
        memory plain(plain_desc, cpu, right);
        reorder(plain, packed).execute(queue, plain, packed); // not counted: ours isn't either
        return Product{ matmul(chosen),
                        { { DNNL_ARG_SRC, memory(left_desc, cpu, left) },
                          { DNNL_ARG_WEIGHTS, packed },
                          { DNNL_ARG_DST, memory(out_desc, cpu, result) } } };
    };
    const Product scores = product(all_rows, count, size, a.queries.data(), a.keys.data(), a.scores.data());
    const Product out = product(all_rows, size, count, a.weights.data(), a.values.data(), a.out.data());
    queue.wait();
    measure(state, [&] {
        scores.multiply.execute(queue, scores.arguments);
        out.multiply.execute(queue, out.arguments);
        queue.wait();
    });
    state.counters["right"] = a.right(size);
}

void shapes(benchmark::internal::Benchmark * bench) {
    bench->ArgNames({ "columns", "size" })->ArgsProduct({ { 1024, 4096 }, { 64, 128 } });
    bench->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(15);
}

BENCHMARK(xsmm_f32)->Apply(shapes);
BENCHMARK(xsmm_bf16)->Apply(shapes);
BENCHMARK(dnnl_f32)->Apply(shapes);
BENCHMARK(dnnl_whole_f32)->Apply(shapes);
BENCHMARK(dnnl_bf16)->Apply(shapes);

} // namespace

// oneDNN's OpenMP reads its number of threads when the program starts.
int main(int argc, char ** argv) {
    if (std::getenv("CASCADE_BENCH_AGAIN") == nullptr) {
        setenv("CASCADE_BENCH_AGAIN", "1", 1);
        setenv("OMP_NUM_THREADS", "1", 1);
        execv("/proc/self/exe", argv);
    }
    if (dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) != dnnl_success) {
        return 1;
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
