// Sidecars on the disk.
#include "sidecar/sidecar.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <unistd.h>

namespace cascade::sidecar {

namespace {

namespace fs = std::filesystem;

constexpr uintmax_t most_bytes = 64U << 20U;

} // namespace

Loaded load(const std::string & path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) { // a pipe would be waited for
        return { {}, fs::exists(path, error) ? "is no file" : "isn't there" };
    }
    const uintmax_t size = fs::file_size(path, error);
    if (error) {
        return { {}, "can't be read" };
    }
    if (size > most_bytes) {
        return { {}, "is larger than any sidecar" };
    }
    std::vector<std::byte> bytes(size);
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char *>(bytes.data()), static_cast<std::streamsize>(size))) {
        return { {}, "can't be read" };
    }
    return decode(bytes);
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
