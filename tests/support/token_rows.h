// Rows of tokens to choose from: random, clustered, degenerate; and the same a layer later.
#pragma once

#include "cascade/cover.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <vector>

namespace cascade::test {

enum class Kind {
    random,     // hardly anything is similar
    clusters,   // around a few centres, some of them opposite
    duplicates, // a handful of different rows
    chains,     // each row is similar to the one before it, not to the one before that
    degenerate, // clusters with zeros, NaN, infinities, huge and tiny rows among them
    same,       // one row over and over
};

struct Shape {
    int64_t tokens;
    int64_t size;
    Kind kind;
};

inline std::ostream & operator<<(std::ostream & out, const Shape & shape) {
    return out << shape.tokens << "x" << shape.size << " kind " << static_cast<int>(shape.kind);
}

inline std::vector<Shape> shapes() {
    std::vector<Shape> list;
    for (const Kind kind :
         { Kind::random, Kind::clusters, Kind::duplicates, Kind::chains, Kind::degenerate, Kind::same }) {
        for (const auto & [tokens, size] : std::vector<std::pair<int64_t, int64_t>>{
                 { 0, 3 }, { 1, 1 }, { 2, 17 }, { 33, 8 }, { 200, 31 }, { 90, 530 }, { 900, 40 } }) {
            list.push_back({ tokens, size, kind });
        }
    }
    return list;
}

class MadeRows {
  public:
    MadeRows(const Shape & of_shape, uint64_t seed)
        : shape(of_shape), stride(shape.size + static_cast<int64_t>(seed % 3)) {
        std::mt19937_64 random(seed);
        std::normal_distribution<float> normal;
        now.resize(static_cast<size_t>(std::max<int64_t>(shape.tokens * stride, 1)));
        for (int64_t t = 0; t < shape.tokens; t++) {
            fill(t, random, normal);
        }
        next = now;
        for (float & value : next) { // a layer adds something small to every token
            value += 0.15F * std::fabs(value) * normal(random);
        }
    }

    TokenRows rows() const { return { now.data(), shape.tokens, shape.size, stride }; }
    TokenRows next_layer() const { return { next.data(), shape.tokens, shape.size, stride }; }

  private:
    void fill(int64_t token, std::mt19937_64 & random, std::normal_distribution<float> & normal) {
        float * row = now.data() + (token * stride);
        const bool clustered = shape.kind != Kind::random && shape.kind != Kind::same;
        const auto centre = static_cast<uint64_t>(random() % 12);
        std::mt19937_64 of_centre(shape.kind == Kind::same ? 0 : centre);
        std::normal_distribution<float> centre_normal; // its own: a distribution may keep a value for the next call
        const float noise = shape.kind == Kind::duplicates || shape.kind == Kind::same ? 0.0F : 0.35F;
        const float sign = shape.kind != Kind::same && centre % 4 == 3 && random() % 2 == 0 ? -1.0F : 1.0F;
        for (int64_t k = 0; k < shape.size; k++) {
            const float base = clustered || shape.kind == Kind::same ? sign * centre_normal(of_centre) : 0.0F;
            row[k] = base + ((clustered || shape.kind == Kind::same ? noise : 1.0F) * normal(random));
        }
        normal.reset();
        if (shape.kind == Kind::chains && token > 0) {
            const float * before = row - stride;
            for (int64_t k = 0; k < shape.size; k++) {
                row[k] = before[k] + (0.4F * normal(random));
            }
        }
        if (shape.kind == Kind::degenerate && random() % 4 == 0) {
            spoil(row, random);
        }
    }

    void spoil(float * row, std::mt19937_64 & random) const {
        const auto at = static_cast<int64_t>(random() % static_cast<uint64_t>(shape.size));
        switch (random() % 5) {
        case 0:
            std::fill_n(row, shape.size, 0.0F);
            break;
        case 1:
            row[at] = std::numeric_limits<float>::quiet_NaN();
            break;
        case 2:
            row[at] = -std::numeric_limits<float>::infinity();
            break;
        case 3:
            std::fill_n(row, shape.size, std::numeric_limits<float>::max());
            break;
        default:
            std::fill_n(row, shape.size, std::numeric_limits<float>::denorm_min());
        }
    }

    Shape shape;
    int64_t stride;
    std::vector<float> now;
    std::vector<float> next;
};

} // namespace cascade::test
