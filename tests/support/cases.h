// How many cases a test over random ones takes.
#pragma once

#include <algorithm>
#include <cstdlib>

#ifndef CASCADE_FEWER_CASES
#define CASCADE_FEWER_CASES 1
#endif

namespace cascade::test {

// CASCADE_TEST_CASES where it is set, for runs that take longer; fewer with a sanitizer.
inline int cases(int usually) {
    const char * wanted = std::getenv("CASCADE_TEST_CASES");
    return wanted != nullptr ? std::max(1, std::atoi(wanted)) : usually / CASCADE_FEWER_CASES;
}

} // namespace cascade::test
