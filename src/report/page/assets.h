// The page's files as they are compiled into the program; cmake/Embed.cmake writes the body.
#pragma once

#include <string_view>

namespace cascade::report {

// Empty where no such file was there when the program was built.
std::string_view embedded(std::string_view name);

} // namespace cascade::report
