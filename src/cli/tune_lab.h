// Epsilons by layer, measured in the plugin itself beside the dense model: each candidate is a sidecar of its own.
#pragma once

#include "cascade/settings.h"
#include "cli/lab.h"
#include "cli/progress.h"
#include "cli/resume_file.h"
#include "evaluate/summary.h"
#include "sidecar/sidecar.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cascade::cli {

struct Candidate {
    std::string label; // tells it from all others of the run
    Mode mode = Mode::near;
    std::vector<float> epsilons; // by layer
};

struct TuneLabOptions {
    std::string model; // files
    std::string text;
    int64_t length = 2048;
    int threads = 1;
    bool f32 = false;
    bool resume = false;
};

class TuneLab {
  public:
    // `fingerprints`: of the model's layers. Throws std::runtime_error with a message for a person.
    TuneLab(llama_model * model, const TuneLabOptions & options, std::vector<uint64_t> fingerprints);

    // In the order of the candidates, over the text's first `windows`; measured before, also by an interrupted run:
    // taken from there. Empty: interrupted.
    std::vector<evaluate::MethodSummary> measure(const std::vector<Candidate> & candidates, int64_t windows);

    int64_t windows(int64_t wanted) const { return text.count(options.length, wanted); }
    int64_t measured() const { return static_cast<int64_t>(finished.size()); } // candidates in windows
    const std::string & kept_in() const { return file.path(); }
    void say(const std::string & what) { doing = what; } // for the line that shows progress

  private:
    using Key = std::pair<std::string, int64_t>; // label and window

    void take(const nlohmann::json & line);
    bool measure_window(const std::vector<Candidate> & candidates, int64_t index, std::optional<Lab> & lab);
    Lab & open_lab(const std::vector<Candidate> & candidates, std::optional<Lab> & lab);

    llama_model * model;
    const TuneLabOptions options;
    std::vector<uint64_t> fingerprints;
    TextWindows text;
    std::map<Key, evaluate::Window> finished;
    ResumeFile file;
    Progress progress;
    std::string doing;
};

} // namespace cascade::cli
