// Rows of two layers and everything else that a choice of representatives takes, out of a fuzzer's bytes.
#pragma once

#include "byte_reader.h"
#include "cascade/cover.h"

#include <vector>

namespace cascade::fuzz {

// One layer's rows in memory that ends with the last value of the last row, so that a step beyond it is seen.
struct Rows {
    std::vector<float> data;
    int64_t tokens = 0;
    int64_t size = 0;
    int64_t stride = 0;

    TokenRows view() const { return { data.data(), tokens, size, stride }; }
    float * row(int64_t token) { return data.data() + (token * stride); }
};

// Mostly small; now and then more tokens than a block of rows holds, or longer rows than a block of values.
Rows read_rows(ByteReader & reader);

// The same rows a layer later: changed by nothing, by a little or beyond recognition.
Rows next_layer(const Rows & rows, ByteReader & reader);

// tau anywhere in (0, 1) that the library takes; often such that some pair of the rows lies on the threshold, to the
// bit.
CoverOptions read_options(ByteReader & reader, const Rows & rows);

// Ascending tokens: none, one, all, or some.
std::vector<int32_t> read_set(ByteReader & reader, int64_t tokens);

// A cover that fits, though it need not be one that any method would have chosen.
Cover read_below(ByteReader & reader, const Rows & rows, const CoverOptions & options, Team & team);

// Makes it one that doesn't fit; false where there is nothing to spoil.
bool spoil(Cover & cover, ByteReader & reader);

} // namespace cascade::fuzz
