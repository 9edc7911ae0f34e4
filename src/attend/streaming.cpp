// StreamingLLM (Xiao et al., "Efficient Streaming Language Models with Attention Sinks"): the first few tokens, which
// take the attention that nothing else wants, and the most recent ones. Ours differs in that the recent part is as long
// as the budget lets it be, beside the exact window that every rule has.
#include "attend/method.h"

#include <algorithm>
#include <numeric>

namespace cascade {

Selection select_streaming(const Block & block, const MethodOptions & options, Team & /*team*/) {
    Selection selection;
    const int64_t count = tokens_in_budget(block, options.budget);
    const int64_t sinks = std::clamp<int64_t>(options.sinks, 0, count);
    selection.opened.resize(static_cast<size_t>(count));
    const auto recent = selection.opened.begin() + sinks;
    std::iota(selection.opened.begin(), recent, 0);
    std::iota(recent, selection.opened.end(), static_cast<int32_t>(block.past - (count - sinks)));
    return selection;
}

} // namespace cascade
