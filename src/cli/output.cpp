#include "cli/output.h"

#include "plan/costs.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

namespace cascade::cli {

void check_writable(const std::string & file) {
    if (!file.empty() && !std::ofstream(file, std::ios::app)) {
        throw std::runtime_error("can't write '" + file + "': give another place with --out");
    }
}

void write_result(const std::string & file, const std::string & text) {
    if (file.empty()) {
        fmt::print("{}", text);
        return;
    }
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.flush();
    if (!out) {
        throw std::runtime_error("can't write '" + file + "'");
    }
}

std::string json_text(const nlohmann::json & json) {
    return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string plain_name(const std::string & path) {
    std::string name = std::filesystem::path(path).filename().string();
    std::replace_if(
        name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, '?');
    return name;
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    gmtime_r(&now, &parts);
    char text[16] = {};
    std::strftime(text, sizeof(text), "%Y-%m-%d", &parts);
    return text;
}

std::string machine_name() {
    const std::string processor = processor_name();
    return fmt::format("{} x {}", std::max(1U, std::thread::hardware_concurrency()),
                       processor.empty() ? "CPU" : processor);
}

std::string typed_command() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::string command{ std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>() };
    while (!command.empty() && command.back() == '\0') {
        command.pop_back();
    }
    std::replace(command.begin(), command.end(), '\0', ' ');
    return command.find('/') < command.find(' ') ? command.substr(command.rfind('/', command.find(' ')) + 1) : command;
}

int stopped(const std::string & parts, int64_t done, int64_t wanted) {
    constexpr int interrupted_exit = 130;
    fmt::print(stderr, "cascade: stopped after {} of {} {}; the same command with --resume goes on\n", done, wanted,
               parts);
    return interrupted_exit;
}

} // namespace cascade::cli
