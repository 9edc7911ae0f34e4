// The laboratory: some tokens through the dense model and through every method, side by side, block by block. The dense
// logits of a block are held until all methods are compared with them, and no longer.
#pragma once

#include "attend/method_run.h"
#include "cli/activations.h"
#include "cli/plugin_mode.h"
#include "cli/text_windows.h"
#include "evaluate/compare.h"

#include <functional>
#include <memory>

namespace cascade::cli {

struct LabOptions {
    std::vector<MethodSpec> methods;
    bool noise = false;   // also the bare engine's other form of attention, as a last method
    int64_t context = 0;  // tokens of the longest text
    int64_t block = 512;  // queries that choose together
    int64_t window = 256; // exact
    int threads = 1;
    uint64_t seed = 1;
    ggml_type key_type = GGML_TYPE_F16; // of the methods' cache; the dense model's is f16
    ggml_type value_type = GGML_TYPE_F16;
};

// Labels of what a lab measures, in order.
std::vector<std::string> labels_of(const LabOptions & options);

class Lab {
  public:
    // Throws std::runtime_error with a message for a person.
    Lab(llama_model * model, const LabOptions & options);

    using Say = std::function<void(int64_t tokens, const std::string & method)>;

    // Scores the predictions of the tokens after `from`, up to the last: of from .. size - 2. false: interrupted.
    // `answers`: also counts, for dense and each method, the tokens predicted right.
    bool run(const Tokens & tokens, int64_t from, const Say & say, evaluate::Window & window,
             evaluate::Answer * answer = nullptr);

  private:
    struct Subject { // a method under study
        std::unique_ptr<MethodRun> run;
        PluginMode * plugin = nullptr; // runs it instead
        llama_seq_id sequence = 0;
        bool on_trunk = true; // has read everything so far
    };
    struct Scored { // the part of a block that is scored
        int64_t from = 0;
        int64_t count = 0;
        std::vector<int32_t> next;
    };

    bool run_block(int64_t first, const Scored & scored, const Say & say, evaluate::Window & window,
                   evaluate::Answer * answer);
    bool run_trunk(const Pass & pass);
    bool run_subject(Subject & subject, const Pass & pass);
    bool run_noise(const Pass & pass, const Scored & scored, evaluate::Window & window, evaluate::Answer * answer);
    bool leaves_trunk(const Subject & subject, int64_t first) const;
    const ActivationStream & stream_of(const Subject & subject) const;
    void compare(const ActivationStream & stream, const Scored & scored, size_t method, evaluate::Window & window,
                 evaluate::Answer * answer);
    ActivationListener listener_of(std::vector<MethodRun *> runs, int64_t first);
    void start(evaluate::Window & window, evaluate::Answer * answer);
    void finish(evaluate::Window & window);

    const LabOptions options;
    llama_model * of;
    Team team;
    evaluate::Comparison comparison;
    std::unique_ptr<ActivationStream> dense;
    std::unique_ptr<ActivationStream> approximate;
    std::unique_ptr<ActivationStream> other_form;
    std::vector<std::unique_ptr<PluginMode>> modes; // by method; none for those that aren't the plugin's
    std::vector<Subject> subjects;
    const Tokens * text = nullptr;
};

} // namespace cascade::cli
