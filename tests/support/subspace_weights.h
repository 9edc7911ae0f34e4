// Weights of a model whose linear maps read from subspaces that are known by construction, without a calibration.
//
// The residual stream lies in S, k directions of its width: embeddings do up to a known share of their length, and what
// layers add does wholly. The values of a head lie in k / heads directions, so that what attention makes of them lies
// in k, whatever its weights. Rows of gate and up repeat after k, up's times a factor of its own, so that silu(gate) up
// is k numbers times factors. Every map reads its whole width: what a gate leaves out of a token would change the
// output.
#pragma once

#include "cascade/team.h"
#include "subspace/products.h"

#include <random>
#include <vector>

namespace cascade::test {

struct SubspaceShape {
    static constexpr int64_t head_size = 128;
    static constexpr int64_t vocabulary = 1024;

    int64_t width = 1024; // a multiple of head_size
    int64_t k = 64;       // a multiple of 32 and of the number of heads, no more than the width
    int64_t layers = 2;
    int64_t noisy_every = 4; // of this many tokens the last is far from S; 0: none is

    int64_t heads() const { return width / head_size; }
    int64_t inner() const { return 43 * width / (16 * k) * k; } // of the feed-forward part: 11008 for 4096

    // ||r|| / ||x|| of a token's embedding.
    float noise(int64_t token) const {
        return noisy_every > 0 && token % noisy_every == noisy_every - 1 ? 0.3F : 0.01F;
    }
};

struct Matrix {
    Matrix(int64_t row_count, int64_t column_count)
        : rows(row_count), columns(column_count), values(static_cast<size_t>(row_count * column_count)) {}

    float * row(int64_t i) { return values.data() + (i * columns); }
    const float * row(int64_t i) const { return values.data() + (i * columns); }
    subspace::MatrixView view() const { return { values.data(), rows, columns, columns }; }

    int64_t rows;
    int64_t columns;
    std::vector<float> values;
};

// The same numbers for the same shape. Bases have a direction in each row.
class SubspaceWeights {
  public:
    SubspaceWeights(const SubspaceShape & a_shape, Team & a_team)
        : shape(a_shape), team(a_team), stream_directions(orthonormal(shape.k, shape.width)) {}

    const Matrix & stream_basis() const { return stream_directions; }
    Matrix embeddings();
    Matrix head(); // logits of a few

    struct Attention {
        Matrix query, key, value, output;
        Matrix basis; // of what `output` reads
    };
    Attention attention();

    struct FeedForward {
        Matrix gate, up, down;
        Matrix basis; // of what `down` reads
    };
    FeedForward feed_forward();

  private:
    Matrix normal(int64_t rows, int64_t columns, double deviation);
    Matrix orthonormal(int64_t rows, int64_t columns);
    Matrix product(const Matrix & left, const Matrix & right);
    Matrix into_stream(const Matrix & amounts); // S^T times amounts
    Matrix turned(const Matrix & basis);

    SubspaceShape shape;
    Team & team;
    std::mt19937_64 random{ 1 };
    Matrix stream_directions;
};

} // namespace cascade::test
