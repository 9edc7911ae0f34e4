// An analysis as scripts, spreadsheets and readers get it, and as an interrupted one is kept.
#include "report/analysis_json.h"
#include "report/analysis_table.h"
#include "report/paper.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace cascade::report {
namespace {

using namespace analysis;
using nlohmann::json;

constexpr size_t layer_count = 3;

// Figures that have no short decimal form, so that a rounding on the way is seen.
Figures made_figures(Method method, int64_t window, size_t layer) {
    Figures figures;
    for (size_t i = 0; i < figure_count; i++) {
        figures.values[i] =
            (1.0 + static_cast<double>(i) + static_cast<double>(window)) / (7.0 + static_cast<double>(layer));
    }
    figures[Figure::r] = 40.0 + static_cast<double>(window) + static_cast<double>(layer);
    figures[Figure::gram_entries] = method == Method::random ? not_measured : 4000.0;
    if (layer == 0) {
        figures[Figure::adds] = figures[Figure::removes] = not_measured;
        figures[Figure::turnover] = figures[Figure::jaccard_previous] = not_measured;
    }
    return figures;
}

Window made_window(int64_t index, const std::vector<std::string> & sources = { "residual" },
                   const std::vector<double> & taus = { 0.3 }) {
    Window window;
    window.tokens = 100;
    window.index = index;
    window.seconds = 1.0 / 3.0;
    for (const std::string & source : sources) {
        for (const double tau : taus) {
            for (size_t i = 0; i < method_count; i++) {
                Series series{ source, tau, static_cast<Method>(i), {}, {} };
                for (size_t layer = 0; layer < layer_count; layer++) {
                    series.layers.push_back(made_figures(series.method, index, layer));
                    if (index == 0) {
                        series.sets.push_back({ 0, 7, static_cast<int32_t>(20 + layer) });
                    }
                }
                window.series.push_back(std::move(series));
            }
            window.similarity.push_back({ source, tau, { { 1, 0.9, 0.8 }, { 0.9, 1, 0.7 }, { 0.8, 0.7, 1 } } });
        }
    }
    if (index == 0) {
        window.pieces = { "a", " token", "\n", "\xF0\x9F" }; // the last ends inside a character
        window.bare_seconds = 2.0 / 7.0;
    }
    return window;
}

AnalysisInfo made_info(const std::string & architecture = "llama") {
    AnalysisInfo info;
    info.model = "some.gguf";
    info.architecture = architecture;
    info.text = "text.txt";
    info.version = "1";
    info.date = "2020-01-01";
    info.isa = "avx2";
    info.sign = "absolute";
    info.layers = layer_count;
    info.windows = 2;
    return info;
}

void expect_equal(double a, double b) { EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << a << " and " << b; }

void expect_same(const Window & a, const Window & b) {
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.index, b.index);
    EXPECT_EQ(a.seconds, b.seconds);
    expect_equal(a.bare_seconds, b.bare_seconds);
    ASSERT_EQ(a.series.size(), b.series.size());
    for (size_t i = 0; i < a.series.size(); i++) {
        EXPECT_EQ(a.series[i].source, b.series[i].source);
        EXPECT_EQ(a.series[i].tau, b.series[i].tau);
        EXPECT_EQ(a.series[i].method, b.series[i].method);
        EXPECT_EQ(a.series[i].sets, b.series[i].sets);
        ASSERT_EQ(a.series[i].layers.size(), b.series[i].layers.size());
        for (size_t layer = 0; layer < a.series[i].layers.size(); layer++) {
            for (size_t figure = 0; figure < figure_count; figure++) {
                SCOPED_TRACE(figure_names[figure]);
                expect_equal(a.series[i].layers[layer].values[figure], b.series[i].layers[layer].values[figure]);
            }
        }
    }
    ASSERT_EQ(a.similarity.size(), b.similarity.size());
    for (size_t i = 0; i < a.similarity.size(); i++) {
        EXPECT_EQ(a.similarity[i].source, b.similarity[i].source);
        EXPECT_EQ(a.similarity[i].tau, b.similarity[i].tau);
        EXPECT_EQ(a.similarity[i].jaccard, b.similarity[i].jaccard);
    }
}

std::string dumped(const json & value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

TEST(WindowJson, ComesBackToTheBit) {
    for (const int64_t index : { 0, 1 }) {
        const Window window = made_window(index, { "residual", "key/0" }, { 0.3, 1.0 / 3.0 });
        const std::string line = dumped(window_json(window));
        EXPECT_EQ(line.find('\n'), std::string::npos) << "one line in a file";
        const Window back = window_from(json::parse(line));
        expect_same(window, back);
        ASSERT_EQ(back.pieces.size(), window.pieces.size());
        for (size_t i = 0; i + 1 < window.pieces.size(); i++) {
            EXPECT_EQ(back.pieces[i], window.pieces[i]);
        }
    }
    EXPECT_EQ(window_from(json::parse(dumped(window_json(made_window(0))))).pieces.back(), "\xEF\xBF\xBD")
        << "what is no character is the mark for it";
}

// Whatever stands in a file, a window is right or refused.
TEST(WindowJson, RefusesWhatIsNoWindow) {
    const json good = window_json(made_window(1));
    for (const char * text : { "null", "[]", "{}", "7", R"("text")", R"({"tokens": 100})" }) {
        EXPECT_ANY_THROW(window_from(json::parse(text))) << text;
    }
    for (const char * key : { "tokens", "index", "series", "similarity", "pieces", "seconds", "bare" }) {
        json without = good;
        without.erase(key);
        EXPECT_ANY_THROW(window_from(without)) << key;
        json wrong = good;
        wrong[key] = "text";
        EXPECT_ANY_THROW(window_from(wrong)) << key;
    }
    json unknown_method = good;
    unknown_method["series"][0]["method"] = "magic";
    EXPECT_ANY_THROW(window_from(unknown_method));
    json few_figures = good;
    few_figures["series"][0]["layers"][0].erase(0);
    EXPECT_ANY_THROW(window_from(few_figures));
    json no_count = good;
    no_count["series"][0]["layers"][0][static_cast<size_t>(Figure::r)] = nullptr;
    EXPECT_ANY_THROW(window_from(no_count));
    json text_figure = good;
    text_figure["series"][0]["layers"][0][0] = "0.3";
    EXPECT_ANY_THROW(window_from(text_figure));
}

TEST(AnalysisJson, HasAResultForEachMethodSourceAndTau) {
    const std::vector<Window> windows = { made_window(0, { "residual", "key" }, { 0.3, 0.5 }) };
    const json analysis = analysis_json(made_info(), windows);
    EXPECT_EQ(analysis.at("kind"), "cascade-analysis");
    EXPECT_EQ(analysis.at("version"), 1);
    EXPECT_EQ(analysis.at("complete"), true);
    EXPECT_EQ(analysis.at("windows_done"), 1);
    const json & results = analysis.at("results");
    ASSERT_EQ(results.size(), 4 * method_count);
    for (const json & result : results) {
        EXPECT_EQ(result.at("tokens"), 100);
        EXPECT_EQ(result.at("windows"), 1);
        EXPECT_TRUE(method_named(result.at("method").get<std::string>()));
        ASSERT_EQ(result.at("layers").size(), layer_count);
        for (size_t layer = 0; layer < layer_count; layer++) {
            const json & figures = result.at("layers")[layer];
            EXPECT_EQ(figures.at("layer"), layer);
            EXPECT_EQ(figures.at("r"), 40 + layer);
            EXPECT_DOUBLE_EQ(figures.at("r_share").get<double>(), (40.0 + static_cast<double>(layer)) / 100.0);
            EXPECT_TRUE(figures.at("jaccard_independent").is_number());
            for (const char * name : { "adds", "removes", "jaccard_previous", "turnover" }) {
                EXPECT_EQ(figures.at(name).is_null(), layer == 0) << name;
            }
        }
        const json & summary = result.at("summary");
        EXPECT_EQ(summary.at("mean_r"), 41);
        EXPECT_TRUE(summary.at("mean_jaccard").is_number());
        EXPECT_EQ(summary.at("gram_savings").is_null(), result.at("method") == "random");
    }
    ASSERT_EQ(analysis.at("layer_similarity").size(), 4U);
    EXPECT_EQ(analysis.at("layer_similarity")[0].at("jaccard")[1][2], 0.7);
}

TEST(AnalysisJson, SampleIsTheWindowThatIsShown) {
    const std::vector<Window> windows = { made_window(1), made_window(0) };
    const json analysis = analysis_json(made_info(), windows);
    const json & sample = analysis.at("sample");
    EXPECT_EQ(sample.at("tokens"), 100);
    EXPECT_EQ(sample.at("pieces").size(), 4U);
    ASSERT_EQ(sample.at("sets").size(), method_count);
    EXPECT_EQ(sample.at("sets")[0].at("method"), "threshold");
    EXPECT_EQ(sample.at("sets")[0].at("layers")[2], json({ 0, 7, 22 }));
    EXPECT_NO_THROW(json::parse(dumped(analysis)));
    ASSERT_EQ(analysis.at("timing").size(), 1U);
    EXPECT_EQ(analysis.at("timing")[0].at("tokens"), 100);
    EXPECT_NEAR(analysis.at("timing")[0].at("ratio").get<double>(), (1.0 / 3.0) / (2.0 / 7.0), 1e-5);
    const std::vector<Window> unseen = { made_window(1) };
    EXPECT_TRUE(analysis_json(made_info(), unseen).at("sample").is_null());
    EXPECT_TRUE(analysis_json(made_info(), unseen).at("timing").empty());
}

TEST(AnalysisJson, IntervalsComeWithTheSecondWindow) {
    const std::vector<Window> one = { made_window(0) };
    const json alone = analysis_json(made_info(), one).at("results")[0];
    EXPECT_FALSE(alone.at("summary").contains("mean_r_interval"));
    EXPECT_FALSE(alone.at("layers")[1].contains("r_sd"));

    const std::vector<Window> two = { made_window(0), made_window(1) };
    const json both = analysis_json(made_info(), two).at("results")[0];
    EXPECT_EQ(both.at("windows"), 2);
    EXPECT_EQ(both.at("summary").at("mean_r"), 41.5);
    const json & layer = both.at("layers")[1];
    EXPECT_EQ(layer.at("r"), 41.5);
    EXPECT_NEAR(layer.at("r_sd").get<double>(), 0.7071068, 1e-6);
    ASSERT_EQ(layer.at("r_interval").size(), 2U);
    EXPECT_NEAR(layer.at("r_interval")[0].get<double>(), 41.5 - (12.706 / 2.0), 1e-3);
    EXPECT_NEAR(layer.at("r_interval")[1].get<double>(), 41.5 + (12.706 / 2.0), 1e-3);
    EXPECT_FALSE(both.at("layers")[0].contains("adds_sd")) << "never measured there";
}

TEST(AnalysisJson, WindowsOfOtherLengthsAreResultsOfTheirOwn) {
    std::vector<Window> windows = { made_window(0), made_window(0) };
    windows[1].tokens = 50;
    const json analysis = analysis_json(made_info(), windows);
    EXPECT_EQ(analysis.at("results").size(), 2 * method_count);
    EXPECT_EQ(analysis.at("layer_similarity").size(), 2U);
}

TEST(AnalysisJson, PaperStandsBesideItsThreeModels) {
    std::vector<Window> windows = { made_window(0) };
    windows.front().tokens = 512;
    const std::map<std::string, int> layers = { { "gpt2", 12 }, { "gptj", 28 }, { "opt", 32 }, { "llama", 12 } };
    for (const auto & [architecture, count] : layers) {
        AnalysisInfo info = made_info(architecture);
        info.layers = count;
        const json analysis = analysis_json(info, windows);
        for (const json & result : analysis.at("results")) {
            const bool in_paper = result.at("method") == "threshold" || result.at("method") == "inherit";
            EXPECT_EQ(result.at("paper").is_object(), architecture != "llama" && in_paper)
                << architecture << result.at("method");
        }
    }
}

TEST(AnalysisJson, PaperStandsBesideItsOwnSettingOnly) {
    const PaperSetting gpt2 = { "gpt2", 12, 512, "residual", 0.30, "absolute", Method::threshold };
    const PaperSetting gptj = { "gptj", 28, 512, "residual", 0.30, "absolute", Method::inherit };
    EXPECT_EQ(paper_figures(gpt2).at("mean_r"), 278);
    EXPECT_EQ(paper_figures(gptj).at("gram_savings"), 0.52);
    std::vector<PaperSetting> others(6, gpt2);
    others[0].layers = 48;
    others[1].tokens = 1024;
    others[2].source = "key";
    others[3].tau = 0.5;
    others[4].sign = "signed";
    others[5].method = Method::linked;
    for (const PaperSetting & other : others) {
        EXPECT_TRUE(paper_figures(other).is_null());
    }
}

std::vector<std::string> lines_of(const std::string & text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

TEST(AnalysisCsv, HasALineForEachLayerAndEqualColumns) {
    const std::vector<Window> windows = { made_window(0, { "residual", "key" }),
                                          made_window(1, { "residual", "key" }) };
    const auto lines = lines_of(analysis_csv(analysis_json(made_info(), windows)));
    ASSERT_EQ(lines.size(), 1 + (2 * method_count * layer_count));
    const auto columns = std::count(lines[0].begin(), lines[0].end(), ',');
    for (const std::string & line : lines) {
        EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns) << line;
        EXPECT_EQ(line.find("nan"), std::string::npos);
        EXPECT_EQ(line.find("null"), std::string::npos);
    }
    EXPECT_TRUE(lines[0].starts_with("tokens,source,tau_start,method,windows,layer,"));
    EXPECT_TRUE(lines[1].starts_with("100,residual,0.3,threshold,2,0,")) << lines[1];
}

TEST(AnalysisTable, ShowsThePapersRowAndTheLayersAskedFor) {
    const std::vector<Window> windows = { made_window(0), made_window(1) };
    const std::string ours = analysis_table(analysis_json(made_info(), windows), { "threshold" });
    EXPECT_EQ(ours.find("paper"), std::string::npos);
    EXPECT_NE(ours.find("some.gguf (llama, 3 layers) on text.txt"), std::string::npos);
    EXPECT_NE(ours.find("41.5 ±"), std::string::npos);
    EXPECT_NE(ours.find("threshold, T = 100, source residual, tau = 0.3"), std::string::npos);
    EXPECT_EQ(ours.find("linked, T ="), std::string::npos);

    AnalysisInfo gpt2 = made_info("gpt2");
    gpt2.layers = 12;
    std::vector<Window> at_its_setting = windows;
    for (Window & window : at_its_setting) {
        window.tokens = 512;
    }
    const std::string beside = analysis_table(analysis_json(gpt2, at_its_setting), { "threshold" });
    EXPECT_NE(beside.find("paper: GPT-2 124M"), std::string::npos);
    EXPECT_NE(beside.find("278.0"), std::string::npos);
    EXPECT_NE(beside.find("paper r"), std::string::npos);
    EXPECT_NE(beside.find("0.912"), std::string::npos) << "its Jaccard of layer 1";
}

TEST(AnalysisTable, NothingDoneIsNothingSaid) {
    const json nothing = analysis_json(made_info(), {});
    EXPECT_TRUE(nothing.at("results").empty());
    EXPECT_EQ(lines_of(analysis_csv(nothing)).size(), 1U);
    EXPECT_FALSE(analysis_table(nothing, { "threshold" }).empty());
}

} // namespace
} // namespace cascade::report
