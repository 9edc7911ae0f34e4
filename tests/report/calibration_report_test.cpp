// What a calibration's JSON and table say.
#include "report/calibration_report.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace cascade::report {
namespace {

CalibrationInfo info() {
    CalibrationInfo info;
    info.model = "model.gguf";
    info.sidecar = "model.cascade.gguf";
    info.tokens = 4096;
    info.window = 2048;
    info.passes_over_text = 1;
    info.sidecar_bytes = 1500000;
    info.gate = 0.05;
    info.inherit_tolerance = 0.05;
    info.prefill = 10.0;
    info.moments = 5.0;
    info.eigenproblems = 30.0;
    info.images_seconds = 2.0;
    info.held_out = 3.0;
    info.bare_prefill = 8.0;
    return info;
}

CalibratedRow row(const std::string & kind, int layer, double inherited, int64_t updates) {
    CalibratedRow row;
    row.input = "blk." + std::to_string(layer) + "." + kind;
    row.kind = kind;
    row.layer = layer;
    row.width = 1024;
    row.k = 64;
    row.maps = 3;
    row.curve = { { 64, 0.5 }, { 128, 0.75 }, { 512, 0.9875 } };
    row.energy = 0.5;
    row.held_out_median = 0.4;
    row.held_out_passing = 0.25;
    row.inherited_energy = inherited;
    row.updates = updates;
    return row;
}

TEST(CalibrationReport, HasMeansByKindAndTheRatioWithoutEigenproblems) {
    const nlohmann::json json =
        calibration_json(info(), { row("attn_q", 0, -1.0, 0), row("ffn_down", 0, -1.0, 0), row("attn_q", 1, 0.8, 48),
                                   row("ffn_down", 1, 0.1, 64), row("attn_q", 2, 0.6, 16) });
    EXPECT_EQ(json.at("kind"), "calibration");
    EXPECT_DOUBLE_EQ(json.at("ratio_to_bare_prefill"), 2.5);
    ASSERT_EQ(json.at("kinds").size(), 2U);
    const nlohmann::json & attention = json.at("kinds")[0];
    EXPECT_EQ(attention.at("kind"), "attn_q");
    EXPECT_DOUBLE_EQ(attention.at("inherited_energy"), 0.7); // of the layers that have one below
    EXPECT_DOUBLE_EQ(attention.at("updates_saved"), 0.5);
    EXPECT_TRUE(json.at("inputs")[0].at("inherited_energy").is_null());
    EXPECT_DOUBLE_EQ(json.at("inputs")[3].at("updates_saved"), 0.0);
}

TEST(CalibrationReport, TableShowsWhatIsKnownAndNoMore) {
    CalibrationInfo unmeasured = info();
    unmeasured.bare_prefill = 0.0;
    CalibratedRow one = row("attn_q", 0, -1.0, 0);
    one.held_out_median = one.held_out_passing = std::numeric_limits<double>::quiet_NaN();
    const nlohmann::json json = calibration_json(unmeasured, { one });
    EXPECT_TRUE(json.at("ratio_to_bare_prefill").is_null());
    const std::string table = calibration_table(json);
    EXPECT_NE(table.find("| attn_q | 0     | 1024  | 64 | 0.5000 | 0.7500 | -     | 0.9875 | 0.9875 |"),
              std::string::npos)
        << table;
    EXPECT_NE(table.find("one pass over the text"), std::string::npos) << table;
    EXPECT_EQ(table.find("nan"), std::string::npos) << table;
}

} // namespace
} // namespace cascade::report
