// What all commands do with their results, and what they say of themselves in them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::cli {

// Before hours of work, not after. Empty: the terminal.
void check_writable(const std::string & file);

void write_result(const std::string & file, const std::string & text);

std::string json_text(const nlohmann::json & json);

// A file's name, without letters that a terminal would obey.
std::string plain_name(const std::string & path);

std::string today();         // UTC, 2026-01-31
std::string machine_name();  // "2 x …"
std::string typed_command(); // as typed; empty where the system doesn't tell

// Says how to go on; the exit code for a run that was stopped.
int stopped(const std::string & parts, int64_t done, int64_t wanted);

} // namespace cascade::cli
