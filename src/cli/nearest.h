// A mistyped word's likely meaning.
#pragma once

#include <string>
#include <vector>

namespace cascade::cli {

// What is most like `word` among `known`, for "did you mean"; empty where nothing is like it.
std::string nearest(const std::string & word, const std::vector<std::string> & known);

} // namespace cascade::cli
