// Filler around what a question hides, until it has its length in tokens.
#include "evaluate/retrieval.h"

#include "evaluate/filler.h"
#include "evaluate/retrieval_tasks.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace cascade::evaluate {

namespace {

constexpr int rounds = 24; // of correcting the length, each with one count of the whole text

struct Sentence {
    std::string text;
    int64_t tokens = 0; // alone; in the text it may be one more or less
};

// Sentences come up again and again, and a tokeniser's start takes longer than a sentence.
class SentenceCounts {
  public:
    explicit SentenceCounts(const CountTokens & count) : count_tokens(count) {}

    int64_t operator()(const std::string & sentence) {
        const auto [entry, is_new] = counts.try_emplace(sentence, 0);
        if (is_new) {
            entry->second = std::max<int64_t>(1, count_tokens(sentence));
        }
        return entry->second;
    }

    const CountTokens & count_tokens;

  private:
    std::unordered_map<std::string, int64_t> counts;
};

class Text {
  public:
    Text(Material what, Random draws, SentenceCounts & counts)
        : material(std::move(what)), random(draws), count_sentence(counts) {
        std::stable_sort(material.hidden.begin(), material.hidden.end(),
                         [](const Hidden & a, const Hidden & b) { return a.depth < b.depth; });
    }

    int64_t tokens() const { return count_sentence.count_tokens(prompt() + material.answer); }

    // At most `length` tokens: sentences are counted one by one, and the whole text only to correct their sum.
    void fill(int64_t length) {
        for (int round = 0; round < rounds; ++round) {
            const int64_t room = length - tokens();
            if (room >= 0 ? !add(room) : !remove(-room)) {
                break;
            }
        }
        while (tokens() > length && remove(1)) {
        }
    }

    std::string prompt() const {
        std::string text = material.head;
        const size_t begin = text.size();
        const auto append = [&](const std::string & sentence) {
            text += (text.size() > begin ? material.separator : "") + sentence;
        };
        double before = 0.0;
        size_t next = 0;
        for (const Sentence & sentence : sentences) {
            const double depth = before / static_cast<double>(total);
            for (; next < material.hidden.size() && material.hidden[next].depth <= depth; ++next) {
                append(material.hidden[next].text);
            }
            append(sentence.text);
            before += static_cast<double>(sentence.tokens);
        }
        for (; next < material.hidden.size(); ++next) {
            append(material.hidden[next].text);
        }
        return text + material.tail;
    }

    const std::string & answer() const { return material.answer; }

  private:
    bool add(int64_t room) {
        const size_t had = sentences.size();
        while (push(random.pick(filler_sentences()), room)) {
        }
        for (const std::string & sentence : short_sentences()) {
            while (push(sentence, room)) {
            }
        }
        return sentences.size() > had;
    }

    bool push(const std::string & text, int64_t & room) {
        const int64_t tokens = count_sentence(material.separator + text);
        if (tokens > room) {
            return false;
        }
        sentences.push_back({ text, tokens });
        total += tokens;
        room -= tokens;
        return true;
    }

    bool remove(int64_t excess) {
        const size_t had = sentences.size();
        for (; excess > 0 && !sentences.empty(); sentences.pop_back()) {
            excess -= sentences.back().tokens;
            total -= sentences.back().tokens;
        }
        return sentences.size() < had;
    }

    Material material;
    Random random;
    SentenceCounts & count_sentence;
    std::vector<Sentence> sentences;
    int64_t total = 0; // of the sentences' tokens
};

const Task & find_task(const std::string & name) {
    std::string known;
    for (const Task & task : all_tasks()) {
        if (task.name == name) {
            return task;
        }
        known += (known.empty() ? "" : ", ") + task.name;
    }
    throw std::invalid_argument("there is no retrieval task '" + name + "': give some of " + known);
}

// A question depends on nothing but the seed and what it is called, so that more questions or tasks leave it as it is
// (its depth is another one where their number differs).
Random draws_for(uint64_t seed, const std::string & task, int64_t length, int64_t index) {
    uint64_t state = Random(seed).next();
    for (const char c : task) {
        state = Random(state ^ static_cast<unsigned char>(c)).next();
    }
    state = Random(state ^ static_cast<uint64_t>(length)).next();
    return Random(state ^ static_cast<uint64_t>(index));
}

Question make_question(const Task & task, int64_t length, double depth, int64_t index, Random random,
                       SentenceCounts & count) {
    Material material = task.make(random, depth, length, count.count_tokens); // draws, so before `random` is copied
    Text text(std::move(material), random, count);
    const int64_t least = text.tokens();
    if (least > length) {
        throw std::invalid_argument("the retrieval task '" + task.name + "' needs " + std::to_string(least) +
                                    " tokens and more: a length of " + std::to_string(length) + " is too short");
    }
    text.fill(length);
    const int64_t tokens = text.tokens();
    if (tokens > length || static_cast<double>(tokens) < 0.95 * static_cast<double>(length)) {
        throw std::invalid_argument("the retrieval task '" + task.name + "' can't be made " + std::to_string(length) +
                                    " tokens long: give a greater length");
    }
    return { task.name, length, depth, index, text.prompt(), text.answer() };
}

} // namespace

std::vector<std::string> retrieval_tasks() {
    std::vector<std::string> result;
    for (const Task & task : all_tasks()) {
        result.push_back(task.name);
    }
    return result;
}

std::vector<Question> make_questions(const RetrievalOptions & options, const CountTokens & count_tokens) {
    if (options.questions < 1) {
        throw std::invalid_argument("retrieval needs one question of each kind at least, not " +
                                    std::to_string(options.questions));
    }
    SentenceCounts counts(count_tokens);
    std::vector<Question> questions;
    for (const std::string & name : options.tasks.empty() ? retrieval_tasks() : options.tasks) {
        const Task & task = find_task(name);
        for (const int64_t length : options.lengths) {
            for (int64_t i = 0; i < options.questions; ++i) {
                const double depth =
                    options.questions == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(options.questions - 1);
                questions.push_back(
                    make_question(task, length, depth, i, draws_for(options.seed, name, length, i), counts));
            }
        }
    }
    return questions;
}

} // namespace cascade::evaluate
