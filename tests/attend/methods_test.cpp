// Methods as a person writes them: what is taken, what is refused, and that a refusal says what is known.
#include "attend/methods.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

namespace cascade {
namespace {

std::string refusal(const std::string & text) {
    try {
        parse_method(text);
    } catch (const std::invalid_argument & error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string & text, const std::string & part) { return text.find(part) != std::string::npos; }

void expect_refused(const std::string & text, const std::vector<std::string> & names) {
    const std::string message = refusal(text);
    EXPECT_FALSE(message.empty()) << text << " was taken";
    EXPECT_TRUE(contains(message, "'" + text + "'")) << message;
    for (const std::string & name : names) {
        EXPECT_TRUE(contains(message, name)) << text << ": " << message << " doesn't name " << name;
    }
}

const std::set<std::string> without_budget = { "exact", "fast", "near",         "balanced",
                                               "gated", "copy", "copy-earlier", "representatives" };

// Who takes an option; and a value that is neither its default nor wrong.
struct Known {
    std::string value;
    std::set<std::string> methods;
};

const std::map<std::string, Known> & known_options() {
    static const std::set<std::string> windowed = { "representatives", "proportional", "refine", "joint",
                                                    "streaming",       "snapkv",       "blocks", "quest",
                                                    "sampled",         "random",       "oracle" };
    static const std::map<std::string, Known> known = {
        { "eps", { "0.125", { "joint", "near", "balanced", "gated" } } },
        { "cover", { "0.75", { "joint", "refine" } } },
        { "bits", { "7", { "joint" } } },
        { "coordinates", { "12", { "joint" } } },
        { "block", { "48", { "blocks", "quest", "sampled" } } },
        { "sample", { "5", { "sampled", "snapkv" } } },
        { "sinks", { "9", { "streaming", "snapkv", "blocks", "quest", "sampled", "random", "oracle" } } },
        { "rank", { "sum", { "joint", "refine", "blocks", "quest", "sampled", "oracle" } } },
        { "rest", { "mean", { "joint" } } },
        { "source", { "value", { "copy", "copy-earlier", "representatives", "proportional", "refine", "joint" } } },
        { "tau", { "0.45", { "copy", "copy-earlier", "representatives" } } },
        { "count", { "0", { "representatives" } } },
        { "set", { "random", { "representatives" } } },
        { "window", { "77", windowed } },
    };
    return known;
}

TEST(Methods, EveryOneIsKnownByItsName) {
    std::set<std::string> names;
    for (const MethodAbout & method : method_list()) {
        const MethodSpec spec = parse_method(method.name);
        EXPECT_EQ(spec.name, method.name);
        EXPECT_EQ(spec.label, method.name);
        EXPECT_FALSE(std::string(method.about).empty());
        EXPECT_EQ(spec.select == nullptr, without_budget.count(method.name) == 1) << method.name;
        EXPECT_EQ(spec.leaves_alone(), spec.name == "exact");
        EXPECT_EQ(spec.window, -1);
        EXPECT_TRUE(names.insert(method.name).second) << method.name << " is there twice";
    }
    EXPECT_EQ(names.size(), 18U);
}

TEST(Methods, HaveTheirDefaults) {
    const MethodSpec joint = parse_method("joint");
    EXPECT_EQ(joint.options.budget, 0.25);
    EXPECT_EQ(joint.options.bits, 4);
    EXPECT_EQ(joint.options.coordinates, 0);
    EXPECT_LT(joint.options.epsilon, 0.0);
    EXPECT_EQ(joint.options.rank, Rank::largest);
    EXPECT_EQ(joint.options.rest, Rest::cover);
    EXPECT_EQ(joint.source, Source::key);
    EXPECT_EQ(parse_method("copy").source, Source::residual);
    EXPECT_EQ(parse_method("copy").tau, 0.30);
    EXPECT_TRUE(parse_method("representatives").count);
    EXPECT_FALSE(parse_method("representatives").random_set);
    EXPECT_EQ(parse_method("streaming").options.sinks, 4);
    for (const char * name : { "blocks", "quest", "sampled" }) {
        EXPECT_EQ(parse_method(name).options.rank, Rank::sum) << name;
    }
    EXPECT_EQ(parse_method("oracle").options.rank, Rank::largest);
    EXPECT_EQ(parse_method("refine").options.rank, Rank::largest);
}

TEST(Methods, WantWhatTheyRead) {
    const std::map<std::string, std::pair<bool, bool>> wanted = {
        // a cover, rows
        { "exact", { false, false } },
        { "copy", { false, true } },
        { "copy-earlier", { false, true } },
        { "representatives", { false, true } },
        { "proportional", { true, true } },
        { "refine", { true, true } },
        { "joint", { true, true } },
        { "joint:rest=groups", { true, true } },
        { "joint:rest=mean", { false, false } },
        { "joint:rest=blocks", { false, false } },
        { "joint:rest=drop", { false, false } },
        { "joint:eps=0.1", { true, true } },
        { "streaming", { false, false } },
        { "oracle", { false, false } },
    };
    for (const auto & [text, both] : wanted) {
        const MethodSpec spec = parse_method(text);
        EXPECT_EQ(spec.wants_cover, both.first) << text;
        EXPECT_EQ(spec.wants_rows(), both.second) << text;
    }
    EXPECT_TRUE(parse_method("joint:eps=0").leaves_alone()) << "a gate that opens everything";
    EXPECT_FALSE(parse_method("joint:eps=0").wants_rows());
    EXPECT_DOUBLE_EQ(parse_method("proportional:0.3").cover_share(), 0.3);
    EXPECT_DOUBLE_EQ(parse_method("joint:0.3:cover=0.5").cover_share(), 0.15);
    EXPECT_DOUBLE_EQ(parse_method("refine:0.5:cover=0.1").cover_share(), 0.05);
}

TEST(Methods, TakeABudgetUnlessTheyReadByOtherMeans) {
    for (const MethodAbout & method : method_list()) {
        const std::string text = std::string(method.name) + ":0.125";
        if (without_budget.count(method.name) == 1) {
            expect_refused(text, { "budget" });
            continue;
        }
        EXPECT_EQ(parse_method(text).options.budget, 0.125) << text;
        EXPECT_EQ(parse_method(text).label, text);
        for (const char * wrong :
             { "", "1.01", "-0.1", "nan", "inf", "abc", "0.5x", " 0.5", "0.5 ", "+0.5", "1e999" }) {
            expect_refused(std::string(method.name) + ":" + wrong, { "0 to 1" });
        }
    }
    EXPECT_EQ(parse_method("joint:1e-1").options.budget, 0.1);
    EXPECT_EQ(parse_method("joint:0").options.budget, 0.0);
}

TEST(Methods, TakeTheirOptionsAndNoOthers) {
    for (const MethodAbout & method : method_list()) {
        std::vector<std::string> own;
        for (const auto & [name, known] : known_options()) {
            if (known.methods.count(method.name) == 1) {
                own.push_back(name);
            }
        }
        for (const auto & [name, known] : known_options()) {
            const std::string text = std::string(method.name) + ":" + name + "=" + known.value;
            if (known.methods.count(method.name) == 1) {
                EXPECT_EQ(refusal(text), "");
            } else {
                std::vector<std::string> named = own;
                named.push_back("'" + name + "'");
                expect_refused(text, named);
            }
        }
        expect_refused(std::string(method.name) + ":nonsense=1", own);
    }
}

TEST(Methods, SetWhatTheirOptionsSay) {
    const MethodSpec joint = parse_method(
        "joint:0.2:eps=0.125:cover=0.75:bits=7:coordinates=12:rank=sum:rest=groups:source=value:window=77");
    EXPECT_EQ(joint.options.budget, 0.2);
    EXPECT_EQ(joint.options.epsilon, 0.125);
    EXPECT_EQ(joint.options.cover, 0.75);
    EXPECT_EQ(joint.options.bits, 7);
    EXPECT_EQ(joint.options.coordinates, 12);
    EXPECT_EQ(joint.options.rank, Rank::sum);
    EXPECT_EQ(joint.options.rest, Rest::groups);
    EXPECT_EQ(joint.source, Source::value);
    EXPECT_EQ(joint.window, 77);
    EXPECT_TRUE(joint.wants_cover);
    const MethodSpec some = parse_method("representatives:tau=0.45:count=0:set=random:source=normalised:window=0");
    EXPECT_EQ(some.tau, 0.45);
    EXPECT_FALSE(some.count);
    EXPECT_TRUE(some.random_set);
    EXPECT_EQ(some.source, Source::normalised);
    EXPECT_EQ(some.window, 0);
    EXPECT_EQ(parse_method("sampled:block=48:sample=5").options.block, 48);
    EXPECT_EQ(parse_method("sampled:block=48:sample=5").options.sample, 5);
    EXPECT_EQ(parse_method("streaming:sinks=9:0.5").options.sinks, 9);
    EXPECT_EQ(parse_method("blocks:rank=largest").options.rank, Rank::largest);
}

TEST(Methods, RefuseWrongValuesAndSayWhichAreRight) {
    expect_refused("joint:bits=1", { "2 to 16" });
    expect_refused("joint:bits=17", { "2 to 16" });
    expect_refused("joint:eps=1.5", { "0 to 1" });
    expect_refused("joint:eps=-1", { "0 to 1" });
    expect_refused("joint:cover=", { "0 to 1" });
    expect_refused("joint:coordinates=-1", { "0 to 4096" });
    expect_refused("joint:coordinates=5000", { "0 to 4096" });
    expect_refused("joint:rank=most", { "largest", "sum" });
    expect_refused("joint:rest=none", { "cover", "blocks", "groups", "mean", "drop" });
    expect_refused("joint:source=query", { "residual", "normalised", "key", "value" });
    expect_refused("joint:rank=", { "largest", "sum" });
    expect_refused("joint:rank=sum=sum", { "largest", "sum" });
    expect_refused("copy:tau=0", { "0.01 to 0.99" });
    expect_refused("copy:tau=1", { "0.01 to 0.99" });
    expect_refused("representatives:set=all", { "chosen", "random" });
    expect_refused("representatives:count=2", { "0 to 1" });
    expect_refused("blocks:block=0", { "1 to" });
    expect_refused("sampled:sample=0", { "1 to" });
    expect_refused("streaming:sinks=-1", { "0 to" });
    expect_refused("joint:window=-1", { "0 to" });
    expect_refused("joint:window=1e99", { "0 to" });
    expect_refused("joint:bits=4x", { "2 to 16" });
    expect_refused("joint:0.2:", { "0 to 1" });
    expect_refused("joint::0.2", { "0 to 1" });
}

// Half a token, or half a bit, is a slip of the pen.
TEST(Methods, RefuseFractionsOfWhatIsWhole) {
    for (const char * text : { "joint:bits=3.5", "joint:coordinates=2.5", "blocks:block=16.9", "sampled:sample=1.5",
                               "streaming:sinks=0.5", "joint:window=7.5", "representatives:count=0.5" }) {
        expect_refused(text, { "whole" });
    }
}

TEST(Methods, RefuseUnknownNamesAndNameTheKnown) {
    std::vector<std::string> all;
    for (const MethodAbout & method : method_list()) {
        all.emplace_back(method.name);
    }
    for (const char * text :
         { "", ":", "Joint", "join", "jointt", " joint", "joint ", "joint=0.2", "joint,0.2", ":0.2" }) {
        expect_refused(text, all);
    }
}

// Pieces that are almost right, put together at random: taken or refused with a word, never anything else.
TEST(Methods, NothingThatIsWrittenDoesHarm) {
    const std::vector<std::string> pieces = { "joint", "copy",   "exact", ":",   "=",     "0.2",   "bits",
                                              "eps",   "window", "rank",  "sum", "-",     "1e9",   "nan",
                                              "\n",    "'",      "cover", "%s",  "quest", "block", "4",
                                              "::",    "\xFF",   " ",     "=:=", "rest",  "drop" };
    std::mt19937_64 random(1);
    int taken = 0;
    for (int round = 0; round < 20000; round++) {
        std::string text;
        for (uint64_t i = random() % 8; i > 0; i--) {
            text += random() % 10 == 0 ? std::string(1, static_cast<char>(random() % 256))
                                       : pieces[random() % pieces.size()];
        }
        try {
            EXPECT_EQ(parse_method(text).label, text);
            taken++;
        } catch (const std::invalid_argument & error) {
            EXPECT_TRUE(contains(error.what(), "method '")) << error.what();
        }
    }
    EXPECT_GT(taken, 10);
}

TEST(Methods, KeepTheFirstTokensWhereTheyAreAskedTo) {
    Team team(1);
    const std::vector<float> rows(64, 1.0F);
    Block block;
    block.queries = 2;
    block.past = 60;
    block.tokens = 62;
    block.key_size = block.value_size = 1;
    block.query = block.key = block.value = rows.data();
    for (const uint64_t seed : { 1U, 2U, 3U }) {
        block.seed = seed;
        const auto opened = parse_method("random:0.2:sinks=4").choose(block, team).opened;
        EXPECT_TRUE(std::is_sorted(opened.begin(), opened.end()));
        EXPECT_EQ(std::vector<int32_t>(opened.begin(), opened.begin() + 4), (std::vector<int32_t>{ 0, 1, 2, 3 }));
        EXPECT_LE(opened.size(), 12U); // those that the rule found too count once
        EXPECT_GE(opened.size(), 8U);
    }
    EXPECT_EQ(parse_method("random:0.2").choose(block, team).opened.size(), 12U);
}

} // namespace
} // namespace cascade
