// What each task of the retrieval suite hides in a text, and what it asks at the end of it.
#pragma once

#include "evaluate/random.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cascade::evaluate {

using CountTokens = std::function<int64_t(const std::string &)>;

struct Hidden {
    std::string text;
    double depth = 0.0;
};

// A question before filler is put around what it hides.
struct Material {
    std::string head;
    std::vector<Hidden> hidden;  // of equal depths, the first one stands first
    std::string separator = " "; // between sentences
    std::string tail;
    std::string answer;
};

struct Task {
    std::string name;
    // `depth`: of what is asked for. `room`: tokens for all of it, for a task whose text grows with the length.
    std::function<Material(Random & random, double depth, int64_t room, const CountTokens & count)> make;
};

const std::vector<Task> & all_tasks();

} // namespace cascade::evaluate
