// The retrieval suite's questions: what they promise, by a tokeniser of our own that counts words, digits and marks.
#include "evaluate/retrieval.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace cascade::evaluate {
namespace {

// A word with the space before it is one token, so is each digit and each mark.
int64_t count_tokens(const std::string & text) {
    int64_t tokens = 0;
    bool in_word = false;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool letter = std::isalpha(byte) != 0;
        tokens += (letter && !in_word) || (!letter && c != ' ') ? 1 : 0;
        in_word = letter;
    }
    return tokens;
}

// FNV-1a
uint64_t hash_of(const std::vector<Question> & questions) {
    uint64_t hash = 0xcbf29ce484222325U;
    for (const Question & question : questions) {
        for (const char c : question.task + "|" + question.prompt + "|" + question.answer) {
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
        }
    }
    return hash;
}

std::vector<Question> questions_of(const std::string & task, int64_t length, int64_t count, uint64_t seed = 1) {
    RetrievalOptions options;
    options.tasks = { task };
    options.lengths = { length };
    options.questions = count;
    options.seed = seed;
    return make_questions(options, count_tokens);
}

size_t occurrences(const std::string & text, const std::string & part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++count;
    }
    return count;
}

std::string last_line(const std::string & text) { return text.substr(text.rfind('\n') + 1); }

std::string message_of(const RetrievalOptions & options) {
    try {
        make_questions(options, count_tokens);
    } catch (const std::invalid_argument & error) {
        return error.what();
    }
    return "";
}

// Where what is asked for stands, as a share of the text's tokens. A variable's value is what is far back.
double depth_of(const Question & question) {
    std::string needle = last_line(question.prompt) + question.answer;
    if (question.task == "variables") {
        needle = "Let" + question.answer + ".";
    } else if (question.task == "counting") {
        needle = "Words: ";
    }
    const auto before = static_cast<double>(count_tokens(question.prompt.substr(0, question.prompt.find(needle))));
    return before / static_cast<double>(count_tokens(question.prompt));
}

TEST(Retrieval, ListsItsTasks) {
    const std::vector<std::string> expected = { "passkey", "multikey", "lookup", "variables", "counting" };
    EXPECT_EQ(retrieval_tasks(), expected);
    RetrievalOptions options;
    options.lengths = { 512, 1024 };
    options.questions = 3;
    const auto questions = make_questions(options, count_tokens);
    ASSERT_EQ(questions.size(), expected.size() * 2 * 3);
    for (size_t i = 0; i < questions.size(); ++i) {
        EXPECT_EQ(questions[i].task, expected[i / 6]);
        EXPECT_EQ(questions[i].length, options.lengths[i / 3 % 2]);
        EXPECT_EQ(questions[i].index, static_cast<int64_t>(i % 3));
        EXPECT_EQ(questions[i].depth, static_cast<double>(i % 3) / 2.0);
    }
}

TEST(Retrieval, SameQuestionsOnEveryMachine) {
    RetrievalOptions options;
    options.lengths = { 512, 1536 };
    EXPECT_EQ(hash_of(make_questions(options, count_tokens)), 0xff3bf64bc9abdaacU);
}

TEST(Retrieval, SeedsDiffer) {
    for (const std::string & task : retrieval_tasks()) {
        std::set<std::string> prompts;
        for (uint64_t seed = 1; seed <= 4; ++seed) {
            for (const Question & question : questions_of(task, 512, 3, seed)) {
                prompts.insert(question.prompt);
            }
        }
        EXPECT_EQ(prompts.size(), 12U) << task;
    }
}

// More questions, tasks or lengths leave a question's words as they are; only its depth moves.
TEST(Retrieval, QuestionsDontDependOnOthers) {
    RetrievalOptions options;
    options.lengths = { 512, 1024 };
    for (const Question & question : make_questions(options, count_tokens)) {
        const auto alone = questions_of(question.task, question.length, options.questions);
        EXPECT_EQ(alone[static_cast<size_t>(question.index)].prompt, question.prompt);
    }
}

TEST(Retrieval, LengthsAreKept) {
    // A tokeniser that begins every text with two tokens of its own: the sum over sentences is far too high.
    const auto with_prefix = [](const std::string & text) { return 2 + count_tokens(text); };
    RetrievalOptions options;
    options.lengths = { 300, 512, 1000, 1536, 4096, 16384 };
    options.questions = 2;
    for (const Question & question : make_questions(options, with_prefix)) {
        const int64_t tokens = with_prefix(question.prompt + question.answer);
        EXPECT_LE(tokens, question.length) << question.task;
        EXPECT_GE(static_cast<double>(tokens), 0.95 * static_cast<double>(question.length)) << question.task;
    }
}

TEST(Retrieval, FewCounts) {
    RetrievalOptions options;
    options.lengths = { 4096 };
    options.questions = 8;
    int64_t characters = 0;
    const auto counted = [&](const std::string & text) {
        characters += static_cast<int64_t>(text.size());
        return count_tokens(text);
    };
    int64_t made = 0;
    for (const Question & question : make_questions(options, counted)) {
        made += static_cast<int64_t>(question.prompt.size());
    }
    EXPECT_LT(characters, 8 * made);
}

TEST(Retrieval, DepthsAreKept) {
    for (const std::string & task : retrieval_tasks()) {
        for (const Question & question : questions_of(task, 4096, 9)) {
            EXPECT_NEAR(depth_of(question), question.depth, 0.05) << task;
        }
    }
}

// The line begun at the end stands in the text once, with the answer after it and nothing else.
TEST(Retrieval, WhatIsAskedForIsSaidOnce) {
    for (const char * task : { "passkey", "multikey", "lookup" }) {
        for (const Question & question : questions_of(task, 1536, 12)) {
            const std::string asked = last_line(question.prompt);
            EXPECT_EQ(occurrences(question.prompt, asked), 2U) << asked; // the second is the question's own
            EXPECT_EQ(occurrences(question.prompt, asked + question.answer + "."), 1U) << asked;
            EXPECT_EQ(occurrences(question.prompt, question.answer), 1U) << asked;
        }
    }
}

TEST(Retrieval, DistractorsDiffer) {
    const std::regex key("The pass key of ([A-Z][a-z]+) is ([0-9]{5})\\.");
    const std::regex pair("The code of the ([a-z]+) is ([a-z]+)([0-9]{5})\\.");
    for (const auto & [task, form, least] : { std::tuple("multikey", key, 6U), std::tuple("lookup", pair, 40U) }) {
        for (const Question & question : questions_of(task, 1536, 6)) {
            std::set<std::string> keys;
            std::set<std::string> values;
            const std::string & text = question.prompt;
            size_t count = 0;
            for (std::sregex_iterator it(text.begin(), text.end(), form), end; it != end; ++it, ++count) {
                keys.insert((*it)[1]);
                values.insert(it->str(it->size() - 1));
            }
            EXPECT_GE(count, least) << task;
            EXPECT_EQ(keys.size(), count) << task;
            EXPECT_EQ(values.size(), count) << task;
        }
    }
}

TEST(Retrieval, ChainsLeadToTheirValues) {
    const std::regex statement("Let ([a-z]+) = ([a-z0-9]+)\\.");
    for (const Question & question : questions_of("variables", 1536, 12)) {
        const std::string & text = question.prompt;
        std::map<std::string, std::string> values;
        for (std::sregex_iterator it(text.begin(), text.end(), statement), end; it != end; ++it) {
            EXPECT_TRUE(values.emplace((*it)[1], (*it)[2]).second) << it->str();
            const bool number = std::isdigit(static_cast<unsigned char>(it->str(2)[0])) != 0;
            EXPECT_TRUE(number || values.count((*it)[2]) == 1) << "set after it is used: " << it->str();
        }
        ASSERT_EQ(values.size(), 8U);
        const std::string asked = last_line(text); // "So lamp ="
        const std::string middle = values.at(asked.substr(3, asked.size() - 5));
        EXPECT_EQ(question.answer, " " + middle + " = " + values.at(middle));
        EXPECT_EQ(occurrences(text, values.at(middle)), 1U);
    }
}

TEST(Retrieval, TheWordCountedIsTheMostCommon) {
    for (const Question & question : questions_of("counting", 1024, 8)) {
        const size_t begin = question.prompt.find("Words: ") + 6;
        std::map<std::string, int> counts;
        const std::string list = question.prompt.substr(begin, question.prompt.find('.', begin) - begin) + ",";
        for (size_t at = 0, comma = 0; (comma = list.find(',', at)) != std::string::npos; at = comma + 1) {
            ++counts[list.substr(at, comma - at)];
        }
        const int most = counts.at(question.answer);
        for (const auto & [word, count] : counts) {
            EXPECT_TRUE(word == question.answer || 2 * count < most) << word;
        }
    }
}

TEST(Retrieval, SaysWhatIsWrong) {
    RetrievalOptions options;
    options.tasks = { "passkey", "riddle" };
    EXPECT_NE(message_of(options).find("no retrieval task 'riddle'"), std::string::npos) << message_of(options);
    EXPECT_NE(message_of(options).find("passkey, multikey"), std::string::npos) << message_of(options);
    options.tasks = { "counting" };
    options.lengths = { 64 };
    EXPECT_NE(message_of(options).find("a length of 64 is too short"), std::string::npos) << message_of(options);
    options.lengths = { -1 };
    EXPECT_NE(message_of(options), "");
    options.lengths = { 1536 };
    options.questions = 0;
    EXPECT_NE(message_of(options), "");
    options.questions = 1;
    EXPECT_EQ(make_questions(options, count_tokens).at(0).depth, 0.5);
}

} // namespace
} // namespace cascade::evaluate
