// Sidecars on the disk.
#include "sidecar/on_disk.h"

#include "sidecar/decode.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unistd.h>

namespace cascade::sidecar {

namespace {

namespace fs = std::filesystem;

constexpr uintmax_t most_bytes = uintmax_t{ 256 } << 30U;
constexpr uint64_t first_head = 1U << 20U; // bytes: enough for most
constexpr uint64_t most_head = 64U << 20U;

} // namespace

OnDisk::OnDisk(const std::string & path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) { // a pipe would be waited for
        why_not = fs::exists(path, error) ? "is no file" : "isn't there";
        return;
    }
    bytes = fs::file_size(path, error);
    if (error) {
        why_not = "can't be read";
    } else if (bytes > most_bytes) {
        why_not = "is larger than any sidecar";
    } else {
        file.open(path, std::ios::binary);
        why_not = file ? "" : "can't be read";
    }
}

bool OnDisk::read(std::span<std::byte> to) {
    file.clear();
    file.seekg(0);
    return static_cast<bool>(file.read(reinterpret_cast<char *>(to.data()), static_cast<std::streamsize>(to.size())));
}

std::vector<std::byte> OnDisk::head() {
    for (uint64_t wanted = first_head;; wanted *= 8) {
        std::vector<std::byte> head(std::min(wanted, bytes));
        if (!read(head)) {
            return {};
        }
        if (wanted >= bytes || wanted >= most_head || !walk(head, bytes).needs_more) {
            return head;
        }
    }
}

Loaded load(const std::string & path) {
    OnDisk file(path);
    if (!file.complaint().empty()) {
        return { {}, file.complaint() };
    }
    const std::vector<std::byte> head = file.head();
    Head decoded = decode_head(walk(head, file.size()));
    return { std::move(decoded.sidecar), std::move(decoded.complaint) };
}

bool save(const Sidecar & sidecar, const std::string & path) {
    const std::vector<std::byte> bytes = encode(sidecar);
    const std::string part = path + "." + std::to_string(::getpid()) + ".part";
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::error_code error;
    if (file) {
        fs::rename(part, path, error);
    }
    if (!file || error) {
        fs::remove(part, error);
        return false;
    }
    return true;
}

} // namespace cascade::sidecar
