#include "backend/machine_costs.h"

#include "backend/log.h"

#include <mutex>
#include <set>

namespace cascade::backend {

namespace {

// Never destroyed: a program may compute while its static objects are on their way out.
struct Known {
    std::mutex lock;
    CostTables tables;
    std::set<std::string> measured; // by this program, or tried
    bool read = false;
};

Known & known() {
    static Known & instance = *new Known();
    return instance;
}

void save(const std::string & file, const CostTables & tables) {
    if (!file.empty() && !write_costs_file(file, costs_as_text(measured_machine(), tables))) {
        say_once(Notice::costs, "can't keep measured costs in " + file +
                                    ": they are measured again in each program; give GGML_CASCADE_COSTS=file");
    }
}

} // namespace

const CostTable * machine_costs(ggml_backend_t engine, const MeasuredShape & shape, int threads,
                                const std::string & given_file) {
    Known & all = known();
    const std::lock_guard guard(all.lock);
    const std::string file = costs_file(given_file);
    if (!all.read) {
        all.read = true;
        if (auto tables = costs_in_text(read_costs_file(file), measured_machine())) {
            all.tables = std::move(*tables);
        }
    }
    const std::string key = shape.key(threads);
    auto found = all.tables.find(key);
    const bool settled = found != all.tables.end() && found->second.is_settled();
    if (!settled && all.measured.insert(key).second) {
        if (const std::optional<CostTable> measured = measure_costs(engine, shape, threads)) {
            const bool added = all.tables.try_emplace(key, *measured).second;
            found = all.tables.find(key);
            if (!added) { // nobody has seen it yet
                found->second.merge(*measured);
            }
            save(file, all.tables);
        }
    }
    return found != all.tables.end() ? &found->second : nullptr;
}

} // namespace cascade::backend
