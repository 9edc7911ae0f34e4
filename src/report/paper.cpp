#include "report/paper.h"

#include <nlohmann/json.hpp>

namespace cascade::report {

namespace {

using analysis::Method;
using nlohmann::json;

// Tables 1, 4 and 9.
json independent_gpt2() {
    return { { "model", "GPT-2 124M" },
             { "mean_r", 278 },
             { "mean_jaccard", 0.863 },
             { "layers",
               { { { "layer", 0 }, { "r", 384 } },
                 { { "layer", 1 }, { "r", 354 }, { "jaccard_previous", 0.912 } },
                 { { "layer", 2 }, { "r", 348 } },
                 { { "layer", 3 }, { "r", 290 }, { "jaccard_previous", 0.762 } },
                 { { "layer", 4 }, { "r", 215 } },
                 { { "layer", 5 }, { "r", 233 }, { "jaccard_previous", 0.882 } },
                 { { "layer", 9 }, { "r", 252 } },
                 { { "layer", 10 }, { "r", 240 }, { "jaccard_previous", 0.937 } },
                 { { "layer", 11 }, { "r", 220 }, { "jaccard_previous", 0.909 } } } } };
}

json independent_gptj() {
    return { { "model", "GPT-J 6B" },
             { "mean_r", 205 },
             { "mean_jaccard", 0.940 },
             { "layers",
               { { { "layer", 0 }, { "r", 69 } },
                 { { "layer", 1 }, { "r", 80 }, { "jaccard_previous", 0.863 } },
                 { { "layer", 2 }, { "r", 89 }, { "jaccard_previous", 0.899 } },
                 { { "layer", 3 }, { "r", 107 }, { "jaccard_previous", 0.832 } },
                 { { "layer", 4 }, { "r", 112 }, { "jaccard_previous", 0.955 } },
                 { { "layer", 5 }, { "r", 125 }, { "jaccard_previous", 0.881 } },
                 { { "layer", 6 }, { "r", 172 }, { "jaccard_previous", 0.727 } },
                 { { "layer", 10 }, { "r", 241 } },
                 { { "layer", 11 }, { "r", 253 }, { "jaccard_previous", 0.945 } },
                 { { "layer", 15 }, { "r", 255 } },
                 { { "layer", 16 }, { "r", 259 }, { "jaccard_previous", 0.985 } },
                 { { "layer", 20 }, { "r", 234 } },
                 { { "layer", 21 }, { "r", 232 }, { "jaccard_previous", 0.991 } },
                 { { "layer", 25 }, { "r", 225 } },
                 { { "layer", 26 }, { "r", 221 }, { "jaccard_previous", 0.982 } },
                 { { "layer", 27 }, { "r", 207 }, { "jaccard_previous", 0.937 } } } } };
}

json independent_opt() {
    return { { "model", "OPT 6.7B" },
             { "mean_r", 142 },
             { "mean_jaccard", 0.825 },
             { "layers",
               { { { "layer", 0 }, { "r", 512 } },
                 { { "layer", 1 }, { "r", 1 }, { "jaccard_previous", 0.002 } },
                 { { "layer", 2 }, { "r", 1 }, { "jaccard_previous", 1.0 } },
                 { { "layer", 5 }, { "r", 1 } },
                 { { "layer", 6 }, { "r", 2 }, { "jaccard_previous", 0.5 } },
                 { { "layer", 10 }, { "r", 37 } },
                 { { "layer", 11 }, { "r", 49 }, { "jaccard_previous", 0.755 } },
                 { { "layer", 15 }, { "r", 82 } },
                 { { "layer", 16 }, { "r", 98 }, { "jaccard_previous", 0.837 } },
                 { { "layer", 20 }, { "r", 239 } },
                 { { "layer", 21 }, { "r", 257 }, { "jaccard_previous", 0.930 } },
                 { { "layer", 25 }, { "r", 259 } },
                 { { "layer", 26 }, { "r", 254 }, { "jaccard_previous", 0.981 } },
                 { { "layer", 31 }, { "r", 231 } } } } };
}

json inherited_layer(int layer, int r, int adds, int removes, double turnover) {
    return { { "layer", layer }, { "r", r }, { "adds", adds }, { "removes", removes }, { "turnover", turnover } };
}

// Tables 2 and 5 (where they differ on layer 10, Table 5's), 6 and 7.
json inherited_gptj() {
    return { { "model", "GPT-J 6B" },
             { "gram_savings", 0.52 },
             { "layers",
               { { { "layer", 0 }, { "r", 69 } },
                 inherited_layer(1, 200, 131, 0, 1.90),
                 inherited_layer(2, 123, 34, 111, 0.73),
                 inherited_layer(3, 164, 69, 28, 0.79),
                 inherited_layer(4, 147, 38, 55, 0.57),
                 inherited_layer(5, 243, 125, 29, 1.05),
                 inherited_layer(10, 264, 5, 3, 0.03),
                 inherited_layer(15, 278, 2, 5, 0.03),
                 inherited_layer(20, 263, 10, 17, 0.10),
                 inherited_layer(25, 243, 5, 10, 0.06),
                 inherited_layer(27, 237, 20, 23, 0.18) } } };
}

} // namespace

json paper_figures(const PaperSetting & setting) {
    const bool independent = setting.method == Method::threshold;
    if ((!independent && setting.method != Method::inherit) || setting.tokens != 512 || setting.tau != 0.30 ||
        setting.source != "residual" || setting.sign != "absolute") {
        return nullptr;
    }
    if (setting.architecture == "gpt2" && setting.layers == 12) {
        return independent ? independent_gpt2() : json{ { "model", "GPT-2 124M" }, { "gram_savings", 0.22 } };
    }
    if (setting.architecture == "gptj" && setting.layers == 28) {
        return independent ? independent_gptj() : inherited_gptj();
    }
    if (setting.architecture == "opt" && setting.layers == 32) {
        return independent ? independent_opt() : json{ { "model", "OPT 6.7B" }, { "gram_savings", 0.63 } };
    }
    return nullptr;
}

} // namespace cascade::report
