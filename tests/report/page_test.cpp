// The pages as text: what is in the data cannot break out of its block, and nothing points to a network. How they look
// and run is scripts/check-page's matter.
#include "report/analysis_page.h"
#include "report/eval_page.h"
#include "report/page/assets.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cascade::report {
namespace {

using nlohmann::json;

bool has_plot_library() { return !embedded("echarts.min.js").empty(); }

#define NEEDS_PLOT_LIBRARY()                                                                                           \
    if (!has_plot_library()) {                                                                                         \
        GTEST_SKIP() << "built without ECharts: run scripts/get-echarts";                                              \
    }

constexpr std::string_view block_start = "<script type=\"application/json\" id=\"data\">";

struct Block {
    size_t start = 0;
    size_t size = 0;
};

// As a browser sees it: up to the first end tag.
Block find_data_block(const std::string & page) {
    const size_t start = page.find(block_start) + block_start.size();
    return { start, page.find("</script>", start) - start };
}

std::string data_block_of(const std::string & page) {
    const Block block = find_data_block(page);
    return page.substr(block.start, block.size);
}

// All that we wrote ourselves: the page without the data and without the library.
std::string own_part_of(std::string page) {
    const Block block = find_data_block(page);
    page.erase(block.start, block.size);
    const std::string_view library = embedded("echarts.min.js");
    page.erase(page.find(library), library.size());
    return page;
}

const std::vector<std::string> & hostile_strings() {
    static const std::vector<std::string> strings{
        "</script><script>alert(1)</script>",
        "</SCRIPT >",
        "<!--<script>",
        "-->",
        "]]>",
        "<!--part data-->",
        "<!--part page.css-->",
        "\"};alert(1);//",
        "' onload='alert(1)",
        "&lt;b&gt; & &quot;",
        "\xe2\x80\xa8 and \xe2\x80\xa9",
        std::string("nul \0 inside", 12),
        "\\u003c/script\\u003e",
        "\n\r\t\x01\x7f",
        "\xf0\x9f\x90\x88",
    };
    return strings;
}

using Writer = std::string (*)(const json &);

class Page : public testing::TestWithParam<Writer> {
  protected:
    static std::string page_of(const json & data) { return GetParam()(data); }
};

INSTANTIATE_TEST_SUITE_P(Both, Page, testing::Values(&analysis_page, &eval_page),
                         [](const auto & test) { return test.index == 0 ? "analysis" : "evaluation"; });

TEST_P(Page, WithoutThePlotLibrarySaysHowToGetIt) {
    if (has_plot_library()) {
        GTEST_SKIP() << "built with ECharts";
    }
    try {
        page_of(json::object());
        FAIL() << "no exception";
    } catch (const std::runtime_error & error) {
        EXPECT_NE(std::string(error.what()).find("run scripts/get-echarts and build again"), std::string::npos);
    }
}

TEST_P(Page, HostileStringsStayInsideTheDataBlock) {
    NEEDS_PLOT_LIBRARY();
    const std::string plain = own_part_of(page_of(json::object()));
    for (const std::string & hostile : hostile_strings()) {
        const json analysis{
            { "model", hostile },
            { "text", hostile },
            { hostile, hostile },
            { "results", { { { "method", hostile }, { "source", hostile } } } },
            { "methods", { { { "name", hostile }, { "kl", hostile } } } },
            { "sample", { { "pieces", { hostile, hostile } } } },
        };
        const std::string page = page_of(analysis);
        const std::string block = data_block_of(page);
        EXPECT_EQ(json::parse(block), analysis) << hostile;
        EXPECT_EQ(block.find_first_of("<>&"), std::string::npos) << hostile;
        EXPECT_TRUE(std::all_of(block.begin(), block.end(), [](char c) { return c >= ' ' && c < 0x7f; })) << hostile;
        EXPECT_EQ(own_part_of(page), plain) << hostile;
    }
}

TEST_P(Page, BytesThatAreNotTextAreReplaced) {
    NEEDS_PLOT_LIBRARY();
    const json analysis{ { "sample", { { "pieces", { "\xf0\x9f", "\xff</script>", "fine" } } } } };
    const json read = json::parse(data_block_of(page_of(analysis)));
    EXPECT_EQ(read["sample"]["pieces"][2], "fine");
    EXPECT_EQ(read["sample"]["pieces"][1], "\xef\xbf\xbd</script>");
}

TEST_P(Page, NothingPointsToANetwork) {
    NEEDS_PLOT_LIBRARY();
    const std::string page = own_part_of(page_of(json::object()));
    EXPECT_FALSE(std::regex_search(page, std::regex("https?:|[\"'(]//[a-z]", std::regex::icase)));
    EXPECT_FALSE(std::regex_search(page, std::regex("\\ssrc=|<link|@import|\\bfetch\\(|XMLHttpRequest|WebSocket")));
    EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST_P(Page, DataNeverBecomesMarkup) {
    NEEDS_PLOT_LIBRARY();
    const std::string page = own_part_of(page_of(json::object()));
    EXPECT_FALSE(std::regex_search(
        page, std::regex("innerHTML|outerHTML|insertAdjacentHTML|document\\.write|\\beval\\(|new Function")));
}

TEST_P(Page, EveryPartOfTheTemplateIsFilled) {
    NEEDS_PLOT_LIBRARY();
    EXPECT_EQ(page_of(json::object()).find("<!--part "), std::string::npos);
}

TEST_P(Page, AnythingMayBeMissing) {
    NEEDS_PLOT_LIBRARY();
    for (const json & analysis : { json(), json::object(), json::array(), json{ { "results", nullptr } } }) {
        EXPECT_EQ(json::parse(data_block_of(page_of(analysis))), analysis);
    }
}

} // namespace
} // namespace cascade::report
