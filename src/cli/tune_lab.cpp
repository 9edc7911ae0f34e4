#include "cli/tune_lab.h"

#include "cli/interrupt.h"
#include "cli/plugin.h"
#include "report/eval_json.h"

#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace cascade::cli {

namespace {

std::string settings_of(const TuneLabOptions & options) {
    return fmt::format("{}\n{}\n{} {}", file_identity(options.model), file_identity(options.text), options.length,
                       options.f32);
}

// A sidecar on the disk for as long as contexts are made that read it.
class SidecarFile {
  public:
    SidecarFile(const Candidate & candidate, const std::vector<uint64_t> & fingerprints) : path(new_temporary_file()) {
        sidecar::Sidecar sidecar;
        sidecar.model_sha256.assign(64, '0');
        sidecar.fingerprints = fingerprints;
        (candidate.mode == Mode::near ? sidecar.near : sidecar.balanced).epsilons = candidate.epsilons;
        if (!sidecar::save(sidecar, path)) {
            throw std::runtime_error("can't write '" + path + "': make room there");
        }
    }
    ~SidecarFile() {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
    }
    SidecarFile(const SidecarFile &) = delete;
    SidecarFile & operator=(const SidecarFile &) = delete;

    const std::string path;
};

} // namespace

TuneLab::TuneLab(llama_model * a_model, const TuneLabOptions & some_options, std::vector<uint64_t> some_fingerprints)
    : model(a_model), options(some_options), fingerprints(std::move(some_fingerprints)), text(model, options.text),
      file("tune", settings_of(options), options.resume, [this](const nlohmann::json & line) { take(line); }) {}

void TuneLab::take(const nlohmann::json & line) {
    evaluate::Window window = report::eval_window_from(line);
    if (window.methods.size() == 1) {
        const Key key = { window.methods.front().label, window.index };
        finished.insert_or_assign(key, std::move(window));
    }
}

Lab & TuneLab::open_lab(const std::vector<Candidate> & candidates, std::optional<Lab> & lab) {
    std::vector<std::unique_ptr<SidecarFile>> files;
    LabOptions wanted;
    wanted.context = options.length;
    wanted.threads = options.threads;
    for (const Candidate & candidate : candidates) {
        files.push_back(std::make_unique<SidecarFile>(candidate, fingerprints));
        MethodSpec method = parse_method(mode_name(candidate.mode));
        method.label = candidate.label;
        method.sidecar = files.back()->path;
        wanted.methods.push_back(std::move(method));
    }
    return lab.emplace(model, wanted);
}

bool TuneLab::measure_window(const std::vector<Candidate> & candidates, int64_t index, std::optional<Lab> & lab) {
    std::vector<Candidate> unknown;
    for (const Candidate & candidate : candidates) {
        if (!finished.contains({ candidate.label, index })) {
            unknown.push_back(candidate);
        }
    }
    if (unknown.empty()) {
        return true;
    }
    // An interrupted run may have left some candidates of a window: then the laboratory of all others won't do.
    std::optional<Lab> own;
    Lab & measuring = unknown.size() < candidates.size() ? open_lab(unknown, own)
                      : lab                              ? *lab
                                                         : open_lab(candidates, lab);
    evaluate::Window window;
    window.index = index;
    const auto show = [&](int64_t tokens, const std::string & method) {
        progress.show(fmt::format("{}: window {}, token {}, {}", doing, index + 1, tokens, method));
    };
    if (!measuring.run(text.window(options.length, index), options.length / 2, show, window)) {
        return false;
    }
    for (const evaluate::MethodWindow & method : window.methods) {
        const evaluate::Window part = { index, window.dense_nll, window.dense_seconds, { method } };
        file.add(report::eval_window_json(part));
        finished.insert_or_assign(Key(method.label, index), part);
    }
    return true;
}

std::vector<evaluate::MethodSummary> TuneLab::measure(const std::vector<Candidate> & candidates, int64_t windows) {
    std::optional<Lab> lab;
    for (int64_t index = 0; index < windows; index++) {
        if (interrupted() || !measure_window(candidates, index, lab)) {
            progress.clear();
            return {};
        }
    }
    progress.clear();
    std::vector<evaluate::MethodSummary> summaries;
    for (const Candidate & candidate : candidates) {
        evaluate::Evaluation evaluation;
        evaluation.labels = { candidate.label };
        for (int64_t index = 0; index < windows; index++) {
            evaluation.windows.push_back(finished.at({ candidate.label, index }));
        }
        summaries.push_back(evaluate::summarise(evaluation).methods.front());
    }
    return summaries;
}

} // namespace cascade::cli
