// proportional: a cover speaks for all of the past. The budget is the cover's size; what a cover of a whole number of
// representatives leaves of it opens the tokens that resemble theirs least.
#include "attend/speakers.h"

#include <algorithm>

namespace cascade {

Selection select_proportional(const Block & block, const MethodOptions & options, Team &) {
    Selection selection;
    if (block.past == 0) {
        return selection;
    }
    const attend::Groups clusters = attend::clusters_of(*block.cover);
    std::vector<float> strangeness;
    strangeness.reserve(block.cover->similarity.size());
    for (const float similarity : block.cover->similarity) {
        strangeness.push_back(-similarity);
    }
    attend::open_in_order(attend::by_falling(strangeness), clusters, tokens_in_budget(block, options.budget),
                          selection);
    attend::add_speakers(block, clusters, selection);
    return selection;
}

} // namespace cascade
