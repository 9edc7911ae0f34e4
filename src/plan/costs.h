// What attention costs on this machine: seconds measured on made-up numbers, in between by interpolation.
#pragma once

#include "cascade/settings.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace cascade {

constexpr int ways_measured = 3; // engine, fast, joint

struct CostTable {
    static constexpr std::array<int64_t, 3> queries = { 1, 16, 128 };
    static constexpr std::array<int64_t, 2> tokens = { 1024, 4096 };

    using Seconds = std::array<std::array<double, tokens.size()>, queries.size()>;
    std::array<Seconds, ways_measured> of_way = {};
    int times_measured = 1; // in as many programs, each time being the least of all

    Seconds & operator[](Way way) { return of_way[static_cast<size_t>(way)]; }
    const Seconds & operator[](Way way) const { return of_way[static_cast<size_t>(way)]; }

    // Straight lines through what was measured, and beyond it. On a cover nothing was opened.
    double seconds(Way way, int64_t queries_at_once, int64_t tokens_in_cache) const;

    // With this share of the tokens opened, which cost what they cost our exact kernels.
    double seconds_on_cover(double opened, int64_t queries_at_once, int64_t tokens_in_cache) const {
        return seconds(Way::joint, queries_at_once, tokens_in_cache) +
               (opened * seconds(Way::fast, queries_at_once, tokens_in_cache));
    }

    // Whether all of it can be seconds, and more work took longer.
    bool is_plausible() const;

    // Other work on the machine only ever makes things slower: what was measured again can correct what was measured
    // beside it.
    void merge(const CostTable & measured_again);
    bool is_settled() const { return times_measured >= 4; }

    // The number of tokens from which on a cover is the cheapest, up to `most`; 0: none.
    int64_t covers_pay_from(double opened, int64_t queries_at_once, int64_t most) const;
};

// Tables by what they were measured for (cost_key), of one machine.
using CostTables = std::map<std::string, CostTable>;

// As a JSON text; `machine` says where it was measured.
std::string costs_as_text(const std::string & machine, const CostTables & tables);

// nullopt: not such a text, or another machine's. Tables that aren't plausible are left out.
std::optional<CostTables> costs_in_text(const std::string & text, const std::string & machine);

// As the system calls it; empty where it doesn't say.
std::string processor_name();

// The processor and the instruction set in use: what is measured once for each.
std::string measured_machine();

// Where tables are kept from one program to the next: `given`, or a file in the user's cache directory; empty: nowhere.
std::string costs_file(const std::string & given);

// The file's text, empty where it can't be read or is larger than any of ours.
std::string read_costs_file(const std::string & file);

// All of it or nothing, whatever other programs write at the same time. false: it can't be written.
bool write_costs_file(const std::string & file, const std::string & text);

} // namespace cascade
