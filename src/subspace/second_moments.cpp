#include "subspace/second_moments.h"

#include <algorithm>
#include <cassert>

namespace cascade::subspace {

namespace {

constexpr int64_t strip = PackedRun::strip;

int64_t strips_of(int64_t width) { return (width + strip - 1) / strip; }

int64_t strip_width(int64_t s) { return (s + 1) * strip; }

// Values of all strips before this one.
int64_t strip_offset(int64_t s) { return strip * strip * s * (s + 1) / 2; }

} // namespace

SecondMoments::SecondMoments(int64_t of_width)
    : size(of_width), values(static_cast<size_t>(strip_offset(strips_of(of_width))), 0.0F) {}

SecondMoments SecondMoments::of(const MatrixView & symmetric) {
    SecondMoments made(symmetric.rows);
    for (int64_t s = 0; s < strips_of(made.size); s++) {
        for (int64_t i = s * strip; i < std::min(made.size, (s + 1) * strip); i++) {
            std::copy_n(symmetric.row(i), i + 1,
                        made.values.begin() + strip_offset(s) + ((i - (s * strip)) * strip_width(s)));
        }
    }
    return made;
}

size_t SecondMoments::bytes(int64_t width) {
    return static_cast<size_t>(strip_offset(strips_of(width))) * sizeof(float);
}

void SecondMoments::add(const MatrixView & rows, PackedRun & scratch, Team & team) {
    assert(rows.columns == size);
    for (int64_t first = 0; first < rows.rows; first += PackedRun::depth) {
        const int64_t some = std::min(PackedRun::depth, rows.rows - first);
        scratch.pack_left(rows, true, first, some, team);
        scratch.pack_right(rows, first, some, team);
        const int64_t all = scratch.strips();
        team.run(all, [&](int64_t task) {
            const int64_t s = all - 1 - task; // the longest first
            scratch.multiply(s, std::min(size, strip_width(s)), values.data() + strip_offset(s), strip_width(s));
        });
    }
    count += rows.rows;
}

float SecondMoments::at(int64_t i, int64_t j) const {
    const int64_t s = std::max(i, j) / strip;
    return values[static_cast<size_t>(strip_offset(s) + ((std::max(i, j) - (s * strip)) * strip_width(s)) +
                                      std::min(i, j))];
}

double SecondMoments::trace() const {
    double sum = 0.0;
    for (int64_t i = 0; i < size; i++) {
        sum += static_cast<double>(at(i, i));
    }
    return sum;
}

std::vector<float> SecondMoments::whole(Team & team) const {
    std::vector<float> matrix(static_cast<size_t>(size * size));
    team.run(strips_of(size), [&](int64_t s) {
        for (int64_t i = s * strip; i < std::min(size, (s + 1) * strip); i++) {
            for (int64_t j = 0; j <= i; j++) {
                const float value = at(i, j);
                matrix[static_cast<size_t>((i * size) + j)] = value;
                matrix[static_cast<size_t>((j * size) + i)] = value;
            }
        }
    });
    return matrix;
}

void SecondMoments::restore(std::span<const float> raw_values, int64_t of_tokens) {
    assert(raw_values.size() == values.size());
    std::copy(raw_values.begin(), raw_values.end(), values.begin());
    count = of_tokens;
}

} // namespace cascade::subspace
