// representatives: between the paper's attention and ours. Every query is asked, but sees only keys and values of
// representatives at or before it, and exactly its own window, which moves with it (0: none, not even itself).
#include "attend/gathered.h"
#include "attend/method_run.h"

#include "cascade/team.h"

#include <cmath>
#include <limits>

namespace cascade {

namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

} // namespace

void attend_representatives(const Attention & attention, int64_t first, const Cover & cover, int64_t window, bool count,
                            std::vector<float> & out, Team & team) {
    std::vector<float> mask(static_cast<size_t>(attention.queries * attention.tokens), hidden);
    std::vector<int32_t> spoken_for(static_cast<size_t>(attention.tokens), 0); // so far, by representative
    int64_t counted = 0;
    for (int64_t query = 0; query < attention.queries; query++) {
        const int64_t own = first + query;
        const int64_t beyond = std::max<int64_t>(0, own + 1 - window); // tokens before the window
        for (; counted < beyond; counted++) {
            if (const int32_t speaker = cover.assigned[static_cast<size_t>(counted)]; speaker >= 0) {
                spoken_for[static_cast<size_t>(speaker)]++;
            }
        }
        float * row = mask.data() + (query * attention.tokens);
        for (int64_t token = beyond; token <= own; token++) {
            row[token] = 0.0F;
        }
        for (const int32_t token : cover.representatives) {
            if (token < beyond) {
                row[token] = count ? std::log(static_cast<float>(spoken_for[static_cast<size_t>(token)])) : 0.0F;
            }
        }
    }
    Attention few = attention;
    few.mask = attend::float_mask(mask, attention.tokens);
    attend::set_output(few, out.data());
    attend::attend_all(few, team);
}

} // namespace cascade
