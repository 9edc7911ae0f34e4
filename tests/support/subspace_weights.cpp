#include "support/subspace_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cascade::test {

namespace {

// Beside embeddings as long as the root of their width, so that these stay what a token is known by.
constexpr double length_of_writes = 0.5;
constexpr double logit_deviation = 2.0;
constexpr double inner_deviation = 0.6; // of silu(a) b, a and b normal

double root(int64_t value) { return std::sqrt(static_cast<double>(value)); }

double dot(const float * one, const float * other, int64_t count) {
    return std::inner_product(one, one + count, other, 0.0);
}

void scale_to(double length, float * row, int64_t count) {
    const auto factor = static_cast<float>(length / std::sqrt(dot(row, row, count)));
    std::for_each_n(row, count, [&](float & value) { value *= factor; });
}

void subtract(double amount, const float * from, float * to, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] -= static_cast<float>(amount) * from[i];
    }
}

Matrix transposed(const Matrix & matrix) {
    Matrix result(matrix.columns, matrix.rows);
    for (int64_t i = 0; i < matrix.rows; i++) {
        for (int64_t j = 0; j < matrix.columns; j++) {
            result.row(j)[i] = matrix.row(i)[j];
        }
    }
    return result;
}

} // namespace

Matrix SubspaceWeights::normal(int64_t rows, int64_t columns, double deviation) {
    Matrix result(rows, columns);
    std::normal_distribution<float> value(0.0F, static_cast<float>(deviation));
    std::generate(result.values.begin(), result.values.end(), [&] { return value(random); });
    return result;
}

// Random rows, each without what the earlier ones have of it.
Matrix SubspaceWeights::orthonormal(int64_t rows, int64_t columns) {
    Matrix result = normal(rows, columns, 1.0);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < i; j++) {
            subtract(dot(result.row(i), result.row(j), columns), result.row(j), result.row(i), columns);
        }
        scale_to(1.0, result.row(i), columns);
    }
    return result;
}

Matrix SubspaceWeights::product(const Matrix & left, const Matrix & right) {
    Matrix result(left.rows, right.columns);
    subspace::multiply(left.view(), false, right.view(), result.values.data(), team);
    return result;
}

Matrix SubspaceWeights::into_stream(const Matrix & amounts) {
    Matrix result(stream_directions.columns, amounts.columns);
    subspace::multiply(stream_directions.view(), true, amounts.view(), result.values.data(), team);
    return result;
}

// Other directions of the same span, none of them with zeros.
Matrix SubspaceWeights::turned(const Matrix & basis) { return product(orthonormal(basis.rows, basis.rows), basis); }

Matrix SubspaceWeights::embeddings() {
    Matrix amounts = normal(SubspaceShape::vocabulary, shape.k, 1.0);
    for (int64_t token = 0; token < amounts.rows; token++) {
        scale_to(1.0, amounts.row(token), shape.k);
    }
    Matrix result = product(amounts, stream_directions);
    Matrix outside = normal(SubspaceShape::vocabulary, shape.width, 1.0);
    const Matrix inside = product(product(outside, transposed(stream_directions)), stream_directions);
    for (int64_t token = 0; token < result.rows; token++) {
        const double noise = shape.noise(token);
        subtract(1.0, inside.row(token), outside.row(token), shape.width);
        scale_to(root(shape.width) * noise, outside.row(token), shape.width);
        scale_to(root(shape.width) * std::sqrt(1.0 - (noise * noise)), result.row(token), shape.width);
        subtract(-1.0, outside.row(token), result.row(token), shape.width);
    }
    return result;
}

Matrix SubspaceWeights::head() {
    return normal(SubspaceShape::vocabulary, shape.width, logit_deviation / root(shape.width));
}

SubspaceWeights::Attention SubspaceWeights::attention() {
    const int64_t size = SubspaceShape::head_size;
    const int64_t of_head = shape.k / shape.heads();
    const double unit = 1.0 / root(shape.width);
    Matrix value(shape.width, shape.width);
    Matrix basis(shape.k, shape.width);
    for (int64_t head = 0; head < shape.heads(); head++) {
        const Matrix directions = orthonormal(of_head, size);
        const Matrix amounts = normal(of_head, shape.width, unit);
        subspace::multiply(directions.view(), true, amounts.view(), value.row(head * size), team);
        for (int64_t i = 0; i < of_head; i++) {
            std::copy_n(directions.row(i), size, basis.row((head * of_head) + i) + (head * size));
        }
    }
    const double writes = length_of_writes * root(shape.width) / static_cast<double>(shape.k);
    return { normal(shape.width, shape.width, unit), normal(shape.width, shape.width, unit), std::move(value),
             into_stream(normal(shape.k, shape.width, writes)), turned(basis) };
}

SubspaceWeights::FeedForward SubspaceWeights::feed_forward() {
    const Matrix gates = normal(shape.k, shape.width, 1.0 / root(shape.width));
    const Matrix ups = normal(shape.k, shape.width, 1.0 / root(shape.width));
    Matrix gate(shape.inner(), shape.width);
    Matrix up(shape.inner(), shape.width);
    Matrix basis(shape.k, shape.inner());
    std::uniform_real_distribution<float> factors(0.5F, 1.5F);
    for (int64_t i = 0; i < shape.inner(); i++) {
        const float factor = factors(random);
        const int64_t repeated = i % shape.k;
        std::copy_n(gates.row(repeated), shape.width, gate.row(i));
        subtract(-factor, ups.row(repeated), up.row(i), shape.width);
        basis.row(repeated)[i] = factor;
    }
    for (int64_t i = 0; i < shape.k; i++) {
        scale_to(1.0, basis.row(i), shape.inner());
    }
    const double writes = length_of_writes * root(shape.width) / (inner_deviation * root(shape.k * shape.inner()));
    return { std::move(gate), std::move(up), into_stream(normal(shape.k, shape.inner(), writes)), turned(basis) };
}

} // namespace cascade::test
