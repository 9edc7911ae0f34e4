// The part of softmax that is written for instruction sets.
//
// A row's values stand in segments of 16: value k at [(k / 16) * step + k % 16].
#pragma once

#include <cstdint>

namespace cascade::attend {

// Replaces each value by exp(value - largest), where -inf gives 0, and returns their sum. `largest` is finite.
float exponentials(float * row, int64_t segments, int64_t step, float largest);

float largest_of(const float * row, int64_t segments, int64_t step);

} // namespace cascade::attend
