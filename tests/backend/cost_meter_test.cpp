#include "backend/cost_meter.h"
#include "backend/engine.h"
#include "backend/machine_costs.h"

#include "ggml-cpp.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

namespace cascade::backend {
namespace {

ggml_backend_ptr new_engine(int threads) {
    static const bool once = (ggml_backend_load_all_from_path(CASCADE_BIN), true);
    (void)once;
    ggml_backend_ptr cpu(ggml_backend_dev_init(cpu_device(), nullptr));
    reinterpret_cast<ggml_backend_set_n_threads_t>(cpu_function("ggml_backend_set_n_threads"))(cpu.get(), threads);
    return cpu;
}

TEST(CostMeter, KnowsHowManyThreadsCompute) {
    for (const int threads : { 1, 2, 3 }) {
        EXPECT_EQ(threads_of(new_engine(threads).get()), threads);
    }
}

TEST(CostMeter, MeasuresEveryWay) {
    const ggml_backend_ptr engine = new_engine(2);
    std::vector<ggml_type> types = { GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0 };
#ifdef CASCADE_FEWER_CASES
    types.resize(1); // a sanitizer makes it long
#endif
    for (const ggml_type type : types) {
        const MeasuredShape shape = { 2, 1, 64, 64, type, type };
        std::optional<CostTable> costs;
        for (int attempt = 0; attempt < 20 && !costs; attempt++) { // a machine that does other things may need some
            costs = measure_costs(engine.get(), shape, 2);
        }
        ASSERT_TRUE(costs) << ggml_type_name(type);
        EXPECT_TRUE(costs->is_plausible());
    }
}

TEST(CostMeter, AShapeThatCanNotBeCoveredCostsForEver) {
    const ggml_backend_ptr engine = new_engine(1);
    const auto costs = measure_costs(engine.get(), { 1, 1, 36, 36 }, 1); // no multiple of 8
    EXPECT_FALSE(costs && (*costs)[Way::joint][0][0] < 1.0);
}

TEST(MachineCosts, AreMeasuredOnceAndKept) {
    const ggml_backend_ptr engine = new_engine(2);
    const auto file = std::filesystem::temp_directory_path() / ("kept-costs-" + std::to_string(::getpid()) + ".json");
    std::filesystem::remove(file);
    const MeasuredShape shape = { 2, 1, 64, 64 };
    const CostTable * costs = machine_costs(engine.get(), shape, 2, file.string());
    if (costs == nullptr) {
        GTEST_SKIP() << "this machine is too busy to measure anything";
    }
    EXPECT_EQ(machine_costs(engine.get(), shape, 2, file.string()), costs);
    const auto kept = costs_in_text(read_costs_file(file.string()), measured_machine());
    ASSERT_TRUE(kept);
    ASSERT_TRUE(kept->contains(shape.key(2)));
    EXPECT_EQ(kept->at(shape.key(2)).of_way, costs->of_way);
    std::filesystem::remove(file);
}

} // namespace
} // namespace cascade::backend
