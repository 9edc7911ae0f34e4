#include "cli/kept_calibration.h"

#include "cli/output.h"
#include "cli/resume_file.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace cascade::cli {

namespace {

namespace fs = std::filesystem;

// Numbers one after the other; the first that fails makes all fail.
class Writer {
  public:
    explicit Writer(std::string to) : path(std::move(to)), part(path + ".part"), file(part, std::ios::binary) {}

    template <typename Number>
    Writer & add(const Number & number) {
        return add(&number, 1);
    }
    template <typename Number>
    Writer & add(const Number * numbers, size_t count) {
        file.write(reinterpret_cast<const char *>(numbers), static_cast<std::streamsize>(count * sizeof(Number)));
        return *this;
    }
    void finish() {
        file.close();
        std::error_code error;
        if (file) {
            fs::rename(part, path, error);
        }
        if (!file || error) {
            throw std::runtime_error("can't write '" + path + "': make room there, or set XDG_CACHE_HOME elsewhere");
        }
    }

  private:
    std::string path;
    std::string part;
    std::ofstream file;
};

class Reader {
  public:
    explicit Reader(const std::string & path) : file(path, std::ios::binary) {
        std::error_code error;
        left = file ? fs::file_size(path, error) : 0;
    }
    template <typename Number>
    bool get(Number & number) {
        return get(&number, 1);
    }
    template <typename Number>
    bool get(Number * numbers, size_t count) {
        if (count > left / sizeof(Number)) {
            return false;
        }
        left -= count * sizeof(Number);
        return static_cast<bool>(
            file.read(reinterpret_cast<char *>(numbers), static_cast<std::streamsize>(count * sizeof(Number))));
    }
    template <typename Number>
    bool get(std::vector<Number> & numbers) { // their count comes first
        uint64_t count = 0;
        if (!get(count) || count > left / sizeof(Number)) {
            return false;
        }
        numbers.resize(count);
        return get(numbers.data(), count);
    }

  private:
    std::ifstream file;
    uint64_t left = 0;
};

std::string first_line(const std::string & path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

} // namespace

KeptCalibration::KeptCalibration(const std::string & moment_settings, const std::string & basis_settings, bool resume)
    : directory(named_place("calibrate", moment_settings, "")),
      bases(named_place("calibrate", moment_settings + "\n" + basis_settings, "-bases")) {
    std::error_code ignored;
    if (!resume) {
        if (fs::exists(bases, ignored)) {
            fmt::print(stderr, "cascade: what an interrupted run of these settings left is forgotten; --resume would "
                               "have gone on with it\n");
        }
        forget();
    }
    fs::create_directories(directory, ignored);
    fs::create_directories(bases, ignored);
    const std::string date_file = directory + "/date";
    begun = first_line(date_file);
    if (begun.empty()) {
        begun = today();
        std::ofstream(date_file) << begun << "\n";
    }
}

void KeptCalibration::save(const MomentsSoFar & so_far, const std::vector<subspace::SecondMoments> & moments) {
    Writer file(directory + "/moments");
    file.add(so_far).add<uint64_t>(moments.size());
    for (const subspace::SecondMoments & one : moments) {
        file.add(one.width()).add(one.tokens()).add(one.raw().data(), one.raw().size());
    }
    file.finish();
}

std::optional<MomentsSoFar> KeptCalibration::load(int64_t first_input,
                                                  std::vector<subspace::SecondMoments> & moments) const {
    Reader file(directory + "/moments");
    MomentsSoFar so_far;
    uint64_t count = 0;
    if (!file.get(so_far) || so_far.first_input != first_input || !file.get(count) || count != moments.size()) {
        return std::nullopt;
    }
    std::vector<float> values;
    for (subspace::SecondMoments & one : moments) {
        int64_t width = 0;
        int64_t tokens = 0;
        values.resize(one.raw().size());
        if (!file.get(width) || width != one.width() || !file.get(tokens) || !file.get(values.data(), values.size())) {
            throw std::runtime_error("what an interrupted run left in '" + directory +
                                     "' is damaged: run without --resume");
        }
        one.restore(values, tokens);
    }
    return so_far;
}

std::string KeptCalibration::basis_path(size_t input) const { return fmt::format("{}/basis-{}", bases, input); }

void KeptCalibration::save(size_t input, const KeptBasis & kept) {
    const subspace::Basis & basis = kept.basis;
    Writer file(basis_path(input));
    file.add(basis.width).add(basis.trace).add<uint64_t>(basis.by_blocks ? 1 : 0).add(kept.inherited);
    file.add<uint64_t>(basis.values.size()).add(basis.values.data(), basis.values.size());
    file.add<uint64_t>(basis.vectors.size()).add(basis.vectors.data(), basis.vectors.size());
    file.add<uint64_t>(kept.guess.size()).add(kept.guess.data(), kept.guess.size()).add(kept.loss);
    file.finish();
}

bool KeptCalibration::has(size_t input) const {
    std::error_code ignored;
    return fs::exists(basis_path(input), ignored);
}

std::optional<KeptBasis> KeptCalibration::load(size_t input) const {
    Reader file(basis_path(input));
    KeptBasis kept;
    uint64_t by_blocks = 0;
    if (!file.get(kept.basis.width) || !file.get(kept.basis.trace) || !file.get(by_blocks) ||
        !file.get(kept.inherited) || !file.get(kept.basis.values) || !file.get(kept.basis.vectors) ||
        !file.get(kept.guess) || !file.get(kept.loss)) {
        return std::nullopt;
    }
    kept.basis.by_blocks = by_blocks != 0;
    return kept;
}

void KeptCalibration::forget_bases() {
    std::error_code ignored;
    fs::remove_all(bases, ignored);
}

void KeptCalibration::forget() {
    forget_bases();
    std::error_code ignored;
    fs::remove_all(directory, ignored);
}

} // namespace cascade::cli
