// The forms were chosen so that a small model that only completes text can answer: what is asked for is a line of the
// text begun once more, word for word. A question in other words ("What is the key of …?") before it, a value that
// doesn't follow its key directly in a long list, or worked examples with numbers of their own cost SmolLM2-135M half
// of its answers or more.
#include "evaluate/retrieval_tasks.h"

#include "evaluate/filler.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace cascade::evaluate {

namespace {

constexpr size_t keys_at_once = 6;
constexpr size_t fewest_pairs = 8, most_pairs = 40; // with 96, SmolLM2-135M finds 6 of 10; with 48, 9
constexpr size_t chains = 4;
constexpr size_t often = 12, others = 12, seldom = 2; // counting: how often the word asked for, how many others, …

const std::string remember = "There is important information hidden in the following text. Remember it.\n\n";

// Numbers of so many digits that begin with different ones as long as there are any left: the first digit alone tells
// them apart, as a likeliest token must.
std::vector<std::string> numbers(Random & random, size_t count, size_t digits) {
    std::vector<std::string> result;
    std::vector<char> first;
    while (result.size() < count) {
        if (first.empty()) {
            first = { '1', '2', '3', '4', '5', '6', '7', '8', '9' };
            random.shuffle(first);
        }
        std::string number(1, first.back());
        while (number.size() < digits) {
            number += static_cast<char>('0' + random.below(10));
        }
        if (std::find(result.begin(), result.end(), number) == result.end()) {
            first.pop_back();
            result.push_back(number);
        }
    }
    return result;
}

std::vector<std::string> draw(Random & random, std::vector<std::string> from, size_t count) {
    random.shuffle(from);
    from.resize(std::min(count, from.size()));
    return from;
}

Material passkey(Random & random, double depth, int64_t, const CountTokens &) {
    const std::string key = numbers(random, 1, 5).front();
    Material material;
    material.head = remember;
    material.hidden = { { "The pass key is " + key + ".", depth } };
    material.tail = "\n\nThe pass key is";
    material.answer = " " + key;
    return material;
}

Material multikey(Random & random, double depth, int64_t, const CountTokens &) {
    const auto owners = draw(random, names(), keys_at_once);
    const auto keys = numbers(random, keys_at_once, 5);
    Material material;
    material.head = remember;
    for (size_t i = 0; i < keys_at_once; ++i) {
        const double at = depth + static_cast<double>(i) / static_cast<double>(keys_at_once);
        material.hidden.push_back(
            { "The pass key of " + owners[i] + " is " + keys[i] + ".", i == 0 ? depth : at - std::floor(at) });
    }
    material.tail = "\n\nThe pass key of " + owners[0] + " is";
    material.answer = " " + keys[0];
    return material;
}

// As many pairs as there is room for, to a limit; in what is left, filler stands between them.
Material lookup(Random & random, double depth, int64_t room, const CountTokens & count) {
    const auto keys = draw(random, nouns(), most_pairs);
    const auto values = numbers(random, keys.size(), 5);
    const auto line = [&](size_t i) { return "The code of the " + keys[i] + " is " + keys[i]; };
    Material material;
    material.head = "A list of things and their codes.\n\n";
    material.separator = "\n";
    std::string all;
    for (size_t i = 0; i < keys.size(); ++i) {
        all += "\n" + line(i) + values[i] + ".";
    }
    const double each = static_cast<double>(count(all)) / static_cast<double>(keys.size());
    const double fit = 0.95 * static_cast<double>(room) / each - 4.0; // head and tail take as much as four lines
    const size_t pairs = std::clamp(static_cast<size_t>(std::max(0.0, fit)), fewest_pairs, keys.size());
    for (size_t i = 0; i < pairs; ++i) {
        material.hidden.push_back({ line(i) + values[i] + ".", 0.0 });
    }
    const double last = static_cast<double>(material.hidden.size() - 1);
    for (size_t i = 0; i < material.hidden.size(); ++i) {
        material.hidden[i].depth = static_cast<double>(i) / last;
    }
    const auto asked = static_cast<size_t>(std::lround(depth * last));
    material.tail = "\n\n" + line(asked);
    material.answer = values[asked];
    return material;
}

std::string joined(std::initializer_list<std::string_view> parts) {
    std::string text;
    for (const std::string_view part : parts) {
        text += part;
    }
    return text;
}

// Chains of two assignments, the others followed to their ends before the one that is asked for: by then it is plain
// what "So" leads to.
Material variables(Random & random, double depth, int64_t, const CountTokens &) {
    const auto variable = draw(random, nouns(), 2 * chains);
    const auto values = numbers(random, chains, 3);
    Material material;
    material.head = "The text below sets variables. Each of them is a number, or the same as another variable.\n\n";
    std::string followed;
    for (size_t i = 0; i < chains; ++i) {
        const std::string & first = variable[2 * i];
        const std::string & second = variable[2 * i + 1];
        const double at = i == 0 ? depth : random.unit();
        material.hidden.push_back({ joined({ "Let ", first, " = ", values[i], "." }), at });
        material.hidden.push_back({ joined({ "Let ", second, " = ", first, "." }), at + (1.0 - at) * random.unit() });
        if (i > 0) {
            followed += joined({ "\nSo ", second, " = ", first, " = ", values[i], "." });
        }
    }
    material.tail = "\n" + followed + "\nSo " + variable[1] + " =";
    material.answer = " " + variable[0] + " = " + values[0];
    return material;
}

Material counting(Random & random, double depth, int64_t, const CountTokens &) {
    const auto words = draw(random, nouns(), 1 + others);
    std::vector<std::string> list(often, words[0]);
    for (size_t i = 1; i < words.size(); ++i) {
        list.insert(list.end(), seldom, words[i]);
    }
    random.shuffle(list);
    std::string text = "Words: " + list[0];
    for (size_t i = 1; i < list.size(); ++i) {
        text += ", " + list[i];
    }
    Material material;
    material.head = "The text below has a list of words in it. One word stands there more often than any other.\n\n";
    material.hidden = { { text + ".", depth } };
    material.tail = "\n\nThe word that stands in the list most often is";
    material.answer = " " + words[0];
    return material;
}

} // namespace

const std::vector<Task> & all_tasks() {
    static const std::vector<Task> tasks = { { "passkey", passkey },
                                             { "multikey", multikey },
                                             { "lookup", lookup },
                                             { "variables", variables },
                                             { "counting", counting } };
    return tasks;
}

} // namespace cascade::evaluate
