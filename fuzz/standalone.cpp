// Runs a fuzz target without libFuzzer, for compilers that haven't got it:
//   cover_fuzz [FILE or FOLDER …] [--seconds N] [--seed S]
// All files; then, until N seconds have passed, random inputs and changed files. The same seed makes the same inputs.
// An input that fails is written to ./crash-input, to be run again as a file.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t * data, size_t size);

// There with AddressSanitizer and its kin.
extern "C" [[gnu::weak]] void
__sanitizer_set_death_callback(void (*callback)()); // NOLINT(bugprone-reserved-identifier)

namespace {

using Input = std::vector<uint8_t>;

const Input * running = nullptr;

void save_running() {
    if (running != nullptr) {
        const int file = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        const bool saved = file >= 0 && write(file, running->data(), running->size()) >= 0;
        const char * said = saved ? "the input is in ./crash-input\n" : "the input could not be written\n";
        (void)!write(STDERR_FILENO, said, std::strlen(said));
        running = nullptr;
    }
}

void save_and_die(int signal) {
    save_running();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void keep_failures() {
    for (const int signal : { SIGILL, SIGTRAP, SIGABRT, SIGFPE }) {
        std::signal(signal, save_and_die); // NOLINT(bugprone-signal-handler): only open, write and raise
    }
    if (__sanitizer_set_death_callback != nullptr) {
        __sanitizer_set_death_callback(save_running);
    } else {
        std::signal(SIGSEGV, save_and_die); // NOLINT(bugprone-signal-handler)
    }
}

void run(const Input & input) {
    running = &input;
    LLVMFuzzerTestOneInput(input.data(), input.size());
    running = nullptr;
}

void read_inputs(const std::filesystem::path & path, std::vector<Input> & inputs) {
    if (std::filesystem::is_directory(path)) {
        for (const auto & entry : std::filesystem::directory_iterator(path)) {
            read_inputs(entry.path(), inputs);
        }
        return;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::fprintf(stderr, "can't read %s\n", path.c_str());
        std::exit(2);
    }
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

Input made_input(const std::vector<Input> & inputs, std::mt19937_64 & random) {
    Input input;
    if (!inputs.empty() && random() % 2 == 0) {
        input = inputs[random() % inputs.size()];
    } else {
        input.resize(random() % 256);
        for (uint8_t & byte : input) {
            byte = static_cast<uint8_t>(random());
        }
    }
    for (uint64_t changes = random() % 8; changes > 0 && !input.empty(); changes--) {
        input[random() % input.size()] = static_cast<uint8_t>(random());
    }
    if (random() % 8 == 0) {
        input.resize(random() % (input.size() + 1));
    }
    return input;
}

} // namespace

int main(int argc, char ** argv) {
    std::vector<Input> inputs;
    double seconds = 0.0;
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word == "--seconds" && i + 1 < argc) {
            seconds = std::atof(argv[++i]);
        } else if (word == "--seed" && i + 1 < argc) {
            seed = std::strtoull(argv[++i], nullptr, 10);
        } else if (word.starts_with("-")) {
            std::fprintf(stderr, "usage: %s [FILE or FOLDER ...] [--seconds N] [--seed S]\n", argv[0]);
            return 2;
        } else {
            read_inputs(word, inputs);
        }
    }
    keep_failures();
    const auto start = std::chrono::steady_clock::now();
    for (const Input & input : inputs) {
        run(input);
    }
    std::mt19937_64 random(seed);
    uint64_t made = 0;
    for (; std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds; made++) {
        run(made_input(inputs, random));
    }
    std::printf("%zu files and %llu made inputs: good\n", inputs.size(), static_cast<unsigned long long>(made));
    return 0;
}
