#include "report/tune_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cascade::report {
namespace {

evaluate::MethodSummary measured(double kl, double bytes) {
    evaluate::MethodSummary summary;
    summary.kl = kl;
    summary.kl_interval = { 0.5 * kl, 1.5 * kl };
    summary.top1 = 0.98;
    summary.top1_interval = { 0.975, 0.985 };
    summary.share = 0.5 * bytes;
    summary.bytes_share = bytes;
    return summary;
}

nlohmann::json sample() {
    TuneInfo info;
    info.model = "model.gguf";
    info.sidecar = "model.cascade.gguf";
    info.tokens = 2048;
    info.windows = 4;
    info.probe_windows = 1;
    info.probe_epsilon = 0.08;
    const std::vector<ProbedLayers> probes = { { 0, 0, measured(0.0002, 0.1) }, { 1, 2, measured(0.0004, 0.3) } };
    const TunedModeReport near = { "near",
                                   0.0055,
                                   0.97,
                                   { { 0.02F, 0.04F, 0.04F }, measured(0.003, 0.2) },
                                   { { 0.03F, 0.03F, 0.03F }, measured(0.003, 0.25) },
                                   true };
    const TunedModeReport balanced = { "balanced", 0.03, 0.93, {}, {}, false };
    return tune_json(info, probes, { near, balanced });
}

TEST(TuneReport, JsonHasWhatWasMeasuredAndWhatIsKept) {
    const nlohmann::json json = sample();
    EXPECT_EQ(json["probes"][1]["first"], 1);
    EXPECT_EQ(json["probes"][1]["last"], 2);
    EXPECT_EQ(json["modes"][0]["kept"], "by_layer");
    EXPECT_EQ(json["modes"][0]["by_layer"]["epsilons"].size(), 3U);
    EXPECT_NEAR(json["modes"][0]["uniform"]["kl_high"].get<double>(), 0.0045, 1e-9);
    EXPECT_TRUE(json["modes"][1]["by_layer"].is_null());
}

TEST(TuneReport, TableSaysWhichEpsilonsAreKeptAndWhereNoneHold) {
    const std::string table = tune_table(sample());
    for (const char * words : { "0.02 to 0.04", "kept", "one for all", "none keeps the promise", "1 to 2", "0.0400",
                                "default", "GGML_CASCADE_SIDECAR=model.cascade.gguf" }) {
        EXPECT_NE(table.find(words), std::string::npos) << words << "\n" << table;
    }
}

} // namespace
} // namespace cascade::report
