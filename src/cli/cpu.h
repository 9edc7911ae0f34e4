// What the processor says that it can do, and what it can.
#pragma once

#include <string>
#include <vector>

namespace cascade::cli {

struct CpuFeature {
    std::string name; // as Linux writes it in /proc/cpuinfo: "avx2", "avx512_vnni", "asimd"
    bool reported;    // by the processor
    bool enabled;     // reported, and the operating system keeps its registers
};

// Those that the engine's kernels or ours have code for; empty on an architecture that isn't known here.
std::vector<CpuFeature> cpu_features();

enum class AmxTrial {
    absent,  // not reported, or no x86
    refused, // the system gives no permission for its registers
    faults,  // reported and permitted, but its instructions end a program: some virtual machines
    works,
};

// Uses AMX for real, in a child process.
AmxTrial try_amx();

// Processors that this process may run on.
int usable_cpus();

// Bytes of memory; 0 where the system doesn't say.
struct Memory {
    uint64_t total = 0;
    uint64_t available = 0;
};
Memory memory();

} // namespace cascade::cli
