#include "cascade/cover.h"
#include "plan/costs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unistd.h>

namespace cascade {

namespace {

constexpr int version = 2;
constexpr std::streamsize most_bytes = 1 << 20;

nlohmann::json as_json(const CostTable & table) {
    return { { "engine", table[Way::engine] },
             { "fast", table[Way::fast] },
             { "joint", table[Way::joint] },
             { "measured", table.times_measured } };
}

// May throw nlohmann::json::exception.
CostTable table_in(const nlohmann::json & json) {
    CostTable table;
    table[Way::engine] = json.at("engine").get<CostTable::Seconds>();
    table[Way::fast] = json.at("fast").get<CostTable::Seconds>();
    table[Way::joint] = json.at("joint").get<CostTable::Seconds>();
    table.times_measured = std::clamp(json.at("measured").get<int>(), 0, 1000);
    return table;
}

} // namespace

std::string costs_as_text(const std::string & machine, const CostTables & tables) {
    nlohmann::json all = nlohmann::json::object();
    for (const auto & [key, table] : tables) {
        all[key] = as_json(table);
    }
    const nlohmann::json text = { { "version", version },
                                  { "machine", machine },
                                  { "queries", CostTable::queries },
                                  { "tokens", CostTable::tokens },
                                  { "seconds", all } };
    return text.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<CostTables> costs_in_text(const std::string & text, const std::string & machine) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    try {
        if (!json.is_object() || json.at("version") != version || json.at("machine") != machine ||
            json.at("queries") != CostTable::queries || json.at("tokens") != CostTable::tokens) {
            return std::nullopt;
        }
        CostTables tables;
        for (const auto & [key, value] : json.at("seconds").items()) {
            const CostTable table = table_in(value);
            if (table.is_plausible()) {
                tables[key] = table;
            }
        }
        return tables;
    } catch (const nlohmann::json::exception &) {
        return std::nullopt;
    }
}

std::string processor_name() {
    std::ifstream lines("/proc/cpuinfo");
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
            return line.substr(line.find(": ") + 2);
        }
    }
    return {};
}

std::string measured_machine() {
    const std::string processor = processor_name();
    return processor.empty() ? isa_in_use() : processor + ", " + isa_in_use();
}

std::string costs_file(const std::string & given) {
    if (!given.empty()) {
        return given == "-" ? "" : given;
    }
    const char * cache = std::getenv("XDG_CACHE_HOME");
    const char * home = std::getenv("HOME");
    if (cache != nullptr && *cache == '/') {
        return std::string(cache) + "/cascade/costs.json";
    }
    return home != nullptr && *home == '/' ? std::string(home) + "/.cache/cascade/costs.json" : "";
}

std::string read_costs_file(const std::string & file) {
    std::ifstream from(file, std::ios::binary | std::ios::ate);
    const std::streamsize size = from ? static_cast<std::streamsize>(from.tellg()) : 0;
    if (size <= 0 || size > most_bytes) {
        return {};
    }
    std::string text(static_cast<size_t>(size), '\0');
    from.seekg(0);
    from.read(text.data(), size);
    return from ? text : std::string();
}

bool write_costs_file(const std::string & file, const std::string & text) {
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), failed);
    const std::string partial = file + "." + std::to_string(::getpid());
    {
        std::ofstream to(partial, std::ios::binary | std::ios::trunc);
        to << text;
        if (!to.flush()) {
            return false;
        }
    }
    std::filesystem::rename(partial, file, failed);
    if (failed) {
        std::error_code ignored;
        std::filesystem::remove(partial, ignored);
    }
    return !failed;
}

} // namespace cascade
