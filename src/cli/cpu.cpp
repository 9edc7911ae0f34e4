#include "cli/cpu.h"

#include "cli/child.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <sched.h>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace cascade::cli {

namespace {

#if defined(__x86_64__)

enum Register { eax, ebx, ecx, edx };

// Register state that the operating system must save (bits of XCR0): without it a program may not use the feature.
constexpr uint64_t no_state = 0;
constexpr uint64_t avx_state = 0x6;
constexpr uint64_t avx512_state = 0xe6;
constexpr uint64_t amx_state = 0x60000;

struct Bit {
    const char * name;
    unsigned leaf;
    unsigned subleaf;
    Register in;
    unsigned bit;
    uint64_t state;
};

constexpr std::array bits = {
    Bit{ "sse4_2", 1, 0, ecx, 20, no_state },         Bit{ "avx", 1, 0, ecx, 28, avx_state },
    Bit{ "avx2", 7, 0, ebx, 5, avx_state },           Bit{ "fma", 1, 0, ecx, 12, avx_state },
    Bit{ "f16c", 1, 0, ecx, 29, avx_state },          Bit{ "bmi2", 7, 0, ebx, 8, no_state },
    Bit{ "avx_vnni", 7, 1, eax, 4, avx_state },       Bit{ "avx512f", 7, 0, ebx, 16, avx512_state },
    Bit{ "avx512bw", 7, 0, ebx, 30, avx512_state },   Bit{ "avx512cd", 7, 0, ebx, 28, avx512_state },
    Bit{ "avx512dq", 7, 0, ebx, 17, avx512_state },   Bit{ "avx512vl", 7, 0, ebx, 31, avx512_state },
    Bit{ "avx512vbmi", 7, 0, ecx, 1, avx512_state },  Bit{ "avx512_vnni", 7, 0, ecx, 11, avx512_state },
    Bit{ "avx512_bf16", 7, 1, eax, 5, avx512_state }, Bit{ "avx512_fp16", 7, 0, edx, 23, avx512_state },
    Bit{ "amx_tile", 7, 0, edx, 24, amx_state },      Bit{ "amx_int8", 7, 0, edx, 25, amx_state },
    Bit{ "amx_bf16", 7, 0, edx, 22, amx_state },
};

bool cpuid_bit(unsigned leaf, unsigned subleaf, Register in, unsigned bit) {
    unsigned values[4] = {};
    return __get_cpuid_count(leaf, subleaf, &values[eax], &values[ebx], &values[ecx], &values[edx]) != 0 &&
           (values[in] >> bit & 1U) != 0;
}

uint64_t saved_state() {
    constexpr unsigned osxsave = 27;
    if (!cpuid_bit(1, 0, ecx, osxsave)) {
        return 0;
    }
    uint32_t low = 0;
    uint32_t high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0)); // _xgetbv would need a compiler flag
    return uint64_t{ high } << 32U | low;
}

std::vector<CpuFeature> read_features() {
    const uint64_t saved = saved_state();
    std::vector<CpuFeature> features;
    for (const Bit & bit : bits) {
        const bool reported = cpuid_bit(bit.leaf, bit.subleaf, bit.in, bit.bit);
        features.push_back({ bit.name, reported, reported && (saved & bit.state) == bit.state });
    }
    return features;
}

[[gnu::target("amx-tile")]] void touch_tiles() {
    alignas(64) unsigned char config[64] = { 1 }; // palette 1: tile 0 of one row of 64 bytes
    config[16] = 64;
    config[48] = 1;
    _tile_loadconfig(config);
    _tile_zero(0);
    _tile_release();
}

AmxTrial try_tiles() {
    constexpr long ask_for_state = 0x1023; // ARCH_REQ_XCOMP_PERM
    constexpr long tile_data = 18;
    const ChildResult result = in_child(
        [] {
            if (syscall(SYS_arch_prctl, ask_for_state, tile_data) != 0) {
                return "refused";
            }
            touch_tiles();
            return "works";
        },
        std::chrono::seconds(10));
    if (result.end != ChildResult::End::finished) {
        return AmxTrial::faults;
    }
    return result.output == "works" ? AmxTrial::works : AmxTrial::refused;
}

#elif defined(__aarch64__)

std::vector<CpuFeature> read_features() {
    const unsigned long one = getauxval(AT_HWCAP);
    const unsigned long two = getauxval(AT_HWCAP2);
    const auto feature = [](const char * name, bool there) { return CpuFeature{ name, there, there }; };
    return { feature("asimd", (one & HWCAP_ASIMD) != 0),     feature("asimdhp", (one & HWCAP_ASIMDHP) != 0),
             feature("asimddp", (one & HWCAP_ASIMDDP) != 0), feature("sve", (one & HWCAP_SVE) != 0),
             feature("i8mm", (two & HWCAP2_I8MM) != 0),      feature("bf16", (two & HWCAP2_BF16) != 0) };
}

AmxTrial try_tiles() { return AmxTrial::absent; }

#else

std::vector<CpuFeature> read_features() { return {}; }

AmxTrial try_tiles() { return AmxTrial::absent; }

#endif

} // namespace

std::vector<CpuFeature> cpu_features() { return read_features(); }

AmxTrial try_amx() {
    const std::vector<CpuFeature> features = cpu_features();
    const bool reported = std::any_of(features.begin(), features.end(), [](const CpuFeature & feature) {
        return feature.name == "amx_tile" && feature.reported;
    });
    return reported ? try_tiles() : AmxTrial::absent;
}

int usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        return CPU_COUNT(&set);
    }
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

Memory memory() {
    constexpr uint64_t kilobyte = 1024;
    Memory result;
    std::ifstream file("/proc/meminfo");
    std::string unit;
    uint64_t amount = 0;
    for (std::string name; file >> name >> amount; std::getline(file, unit)) {
        if (name == "MemTotal:") {
            result.total = amount * kilobyte;
        } else if (name == "MemAvailable:") {
            result.available = amount * kilobyte;
        }
    }
    return result;
}

} // namespace cascade::cli
