#include "cover/leading.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace cascade::cover {

namespace {

// Enough rows for the threads to share, few enough that comparing a block with itself is a small part of the work.
constexpr int64_t block_rows = 384;

class Leading {
  public:
    Leading(Choice & a_choice, const Columns & those_given)
        : choice(a_choice), given(those_given), found(choice.rows.size), block(choice.rows.size, block_rows),
          best(block_rows), best_found(block_rows), given_limit(block_rows),
          products(static_cast<size_t>(block_rows * product_stride)) {}

    Led run(std::span<const int32_t> sequence);

  private:
    void compare_with_leaders();
    std::vector<int64_t> candidates() const;
    void compare_candidates(const std::vector<int64_t> & candidates);
    bool similar(float product) const {
        return similarity_of(product, choice.options.sign) >= choice.options.threshold();
    }
    void append_results(Led & led) const;

    Choice & choice;
    const Columns & given;
    Columns found;
    RowBlock block;
    std::vector<Best> best;       // among the given
    std::vector<Best> best_found; // among those found; columns of `found`
    std::vector<int32_t> given_limit;
    const int64_t product_stride = block_rows + (int64_t{ 2 } * kernel().columns);
    std::vector<float> products; // of the block's rows with its candidates
};

Led Leading::run(std::span<const int32_t> sequence) {
    constexpr size_t first_rows = 96;
    constexpr size_t most_rows = block_rows;
    Led led{ {}, Columns(choice.rows.size), {}, {} };
    led.assigned.reserve(sequence.size());
    led.similarity.reserve(sequence.size());
    // Small blocks first: while there are no leaders, every token is a candidate.
    for (size_t first = 0, rows = first_rows; first < sequence.size();
         first += rows, rows = std::min(2 * rows, most_rows)) {
        block.set(choice.rows, sequence.subspan(first, std::min(rows, sequence.size() - first)));
        compare_with_leaders();
        compare_candidates(candidates());
        append_results(led);
    }
    for (int32_t i = 0; i < found.count(); i++) {
        led.leaders.push_back(found.token(i));
    }
    led.columns = std::move(found);
    return led;
}

void Leading::compare_with_leaders() {
    std::fill(best.begin(), best.end(), Best{});
    std::fill(best_found.begin(), best_found.end(), Best{});
    for (int64_t i = 0; i < block.count(); i++) {
        given_limit[static_cast<size_t>(i)] = given.count_before(block.token(i));
    }
    const std::vector<int32_t> all_found(static_cast<size_t>(block.count()), found.count());
    choice.team.run(block.parts(), [&](int64_t part) {
        block.pack(part);
        block.find_best(part, given, given_limit, choice.options.sign, best, choice.multiply_adds);
        block.find_best(part, found, all_found, choice.options.sign, best_found, choice.multiply_adds);
    });
}

std::vector<int64_t> Leading::candidates() const {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < block.count(); i++) {
        const auto at = static_cast<size_t>(i);
        if (std::max(best[at].similarity, best_found[at].similarity) < choice.options.threshold()) {
            result.push_back(i);
        }
    }
    return result;
}

// Which candidates lead is decided in order; then each row of the block looks at the new leaders before it.
void Leading::compare_candidates(const std::vector<int64_t> & candidates) {
    if (candidates.empty()) {
        return;
    }
    const int32_t first = found.count();
    const int32_t first_panel = first / kernel().columns;
    block.copy_to(found, candidates, choice.team); // nearly all will stay
    choice.team.run(block.parts(), [&](int64_t part) {
        block.multiply(part, found, first_panel, products.data(), product_stride, choice.multiply_adds);
    });
    std::vector<int64_t> fresh;        // rows of the new leaders
    std::vector<size_t> fresh_columns; // and where their products stand
    size_t next = 0;
    for (int64_t i = 0; i < block.count(); i++) {
        const float * row = products.data() + (i * product_stride);
        const auto similar_to = [&](size_t column) { return similar(row[column]); };
        const bool candidate = next < candidates.size() && candidates[next] == i;
        Best & nearest_found = best_found[static_cast<size_t>(i)];
        if (candidate && std::none_of(fresh_columns.begin(), fresh_columns.end(), similar_to)) {
            nearest_found = { 2.0F, first + static_cast<int32_t>(fresh.size()) }; // itself, nearer than any other
            fresh.push_back(i);
            fresh_columns.push_back(static_cast<size_t>(first - (first_panel * kernel().columns)) + next);
        } else {
            for (size_t f = 0; f < fresh.size(); f++) {
                take_better(row[fresh_columns[f]], first + static_cast<int32_t>(f), choice.options.sign, nearest_found);
            }
        }
        next += candidate ? 1 : 0;
    }
    if (fresh.size() < candidates.size()) {
        found.shrink(first);
        block.copy_to(found, fresh, choice.team);
    }
}

// Of equally similar ones the earliest token, wherever it comes from.
void Leading::append_results(Led & led) const {
    for (int64_t i = 0; i < block.count(); i++) {
        const Best & a = best[static_cast<size_t>(i)];
        const Best & b = best_found[static_cast<size_t>(i)];
        const int32_t token_a = a.column >= 0 ? given.token(a.column) : std::numeric_limits<int32_t>::max();
        const int32_t token_b = b.column >= 0 ? found.token(b.column) : std::numeric_limits<int32_t>::max();
        const bool take_a = a.similarity > b.similarity || (a.similarity == b.similarity && token_a < token_b);
        const int32_t leader = take_a ? token_a : token_b;
        led.assigned.push_back(leader);
        led.similarity.push_back(leader == block.token(i) ? 1.0F : std::max(a.similarity, b.similarity));
    }
}

} // namespace

void Choice::check() const {
    if (!(options.tau > 0.0 && options.tau < 1.0) || options.threshold() >= 1.0F || options.threshold() <= 0.0F) {
        throw std::invalid_argument("tau must lie between 0 and 1");
    }
    if (rows.tokens < 0 || rows.tokens > std::numeric_limits<int32_t>::max() || rows.size < 1 ||
        rows.stride < rows.size) {
        throw std::invalid_argument("a cover needs rows of at least one value, and fewer than 2^31 of them");
    }
}

bool strictly_ascending(std::span<const int32_t> tokens) {
    return std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>()) == tokens.end();
}

std::vector<int32_t> all_tokens(int64_t count) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
}

std::vector<Best> nearest(Choice & choice, std::span<const int32_t> tokens, const Columns & columns, Bound bound) {
    std::vector<Best> result;
    result.reserve(tokens.size());
    RowBlock block(choice.rows.size, block_rows);
    std::vector<int32_t> limit(block_rows);
    std::vector<Best> best(block_rows);
    for (size_t first = 0; first < tokens.size(); first += block_rows) {
        block.set(choice.rows, tokens.subspan(first, std::min<size_t>(block_rows, tokens.size() - first)));
        for (int64_t i = 0; i < block.count(); i++) {
            const int32_t end = block.token(i) + (bound == Bound::up_to ? 1 : 0);
            limit[static_cast<size_t>(i)] = bound == Bound::none ? columns.count() : columns.count_before(end);
        }
        std::fill(best.begin(), best.end(), Best{});
        choice.team.run(block.parts(), [&](int64_t part) {
            block.pack(part);
            block.find_best(part, columns, limit, choice.options.sign, best, choice.multiply_adds);
        });
        result.insert(result.end(), best.begin(), best.begin() + block.count());
    }
    return result;
}

Led lead(Choice & choice, std::span<const int32_t> sequence, const Columns & given) {
    return Leading(choice, given).run(sequence);
}

} // namespace cascade::cover
