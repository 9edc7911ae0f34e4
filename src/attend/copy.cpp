// copy: the first paper's attention to the letter. Representatives attend to representatives (causally, as the model
// does); every other token takes the output of the representative it is assigned to. "Anywhere" is among the tokens so
// far: with a block as long as the window, as the paper has it, that is all of them, later ones included.
#include "attend/gathered.h"
#include "attend/method_run.h"

#include "cascade/team.h"

#include <algorithm>
#include <limits>

namespace cascade {

void attend_copy(const Attention & attention, int64_t first, const Cover & cover, std::vector<float> & outputs,
                 Team & team) {
    const auto & all = cover.representatives;
    const auto begin = std::lower_bound(all.begin(), all.end(), static_cast<int32_t>(first));
    std::vector<int32_t> asking; // rows of the block
    for (auto token = begin; token != all.end(); ++token) {
        asking.push_back(*token - static_cast<int32_t>(first));
    }
    Attention few = attention;
    few.queries = static_cast<int64_t>(asking.size());
    few.tokens = cover.size();
    std::vector<float> query;
    std::vector<float> key;
    std::vector<float> value;
    few.query = attend::gather(attention.query, asking, few.heads, few.key_size, query);
    few.key = attend::gather(attention.key, all, few.kv_heads, few.key_size, key);
    few.value = attend::gather(attention.value, all, few.kv_heads, few.value_size, value);
    std::vector<float> mask(asking.size() * all.size(), 0.0F);
    for (size_t i = 0; i < asking.size(); i++) {
        const auto own = static_cast<size_t>(begin - all.begin()) + i;
        std::fill(mask.begin() + static_cast<std::ptrdiff_t>((i * all.size()) + own + 1),
                  mask.begin() + static_cast<std::ptrdiff_t>((i + 1) * all.size()),
                  -std::numeric_limits<float>::infinity());
    }
    few.mask = attend::float_mask(mask, few.tokens);
    const int64_t width = few.heads * few.value_size;
    std::vector<float> out(static_cast<size_t>(few.queries * width));
    attend::set_output(few, out.data());
    attend::attend_all(few, team);

    outputs.resize(static_cast<size_t>((first + attention.queries) * width));
    for (size_t i = 0; i < asking.size(); i++) {
        std::copy_n(out.data() + (static_cast<int64_t>(i) * width), width,
                    outputs.data() + ((first + asking[i]) * width));
    }
    for (int64_t token = first; token < first + attention.queries; token++) {
        const int32_t speaker = cover.assigned[static_cast<size_t>(token)];
        std::copy_n(outputs.data() + (speaker * width), width, outputs.data() + (token * width));
    }
}

} // namespace cascade
