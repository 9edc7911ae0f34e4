// A random set of the budget's size: the control that any rule has to beat.
#include "attend/method.h"

namespace cascade {

Selection select_random(const Block & block, const MethodOptions & options, Team & /*team*/) {
    Selection selection;
    if (block.past > 0) {
        selection.opened = random_representatives(block.past, tokens_in_budget(block, options.budget), block.seed);
    }
    return selection;
}

} // namespace cascade
