#include "cli/eval_run.h"

#include "cli/engine.h"
#include "cli/f32_model.h"
#include "cli/interrupt.h"
#include "cli/plugin.h"
#include "cli/progress.h"
#include "cli/resume_file.h"
#include "report/eval_json.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

namespace cascade::cli {

namespace {

using evaluate::Answer;
using evaluate::Question;
using evaluate::Window;

// Everything that a part's figures depend on, but which part it is.
std::string settings_of(const EvalOptions & options) {
    const LabOptions & lab = options.lab;
    std::string text = file_identity(options.model) + "\n" + (options.text.empty() ? "" : file_identity(options.text));
    text += fmt::format("\n{} {} {} {} {} {} {} {} {} {}\n", options.length, lab.block, lab.window, lab.seed, lab.noise,
                        static_cast<int>(lab.key_type), static_cast<int>(lab.value_type), options.f32,
                        options.retrieval, options.questions.seed);
    text += fmt::format("{} {} {}\n", fmt::join(options.questions.tasks, " "),
                        fmt::join(options.questions.lengths, " "), options.questions.questions);
    if (const char * sidecar = std::getenv("GGML_CASCADE_SIDECAR");
        sidecar != nullptr && std::filesystem::exists(sidecar)) {
        text += file_identity(sidecar) + "\n";
    }
    return text + fmt::format("{}", fmt::join(labels_of(lab), "\n"));
}

// The tokens of a question and its answer; `from`: the token whose prediction is the answer's first.
Tokens question_tokens(const llama_model * model, const Question & question, int64_t & from) {
    Tokens whole = tokenise(model, question.prompt + question.answer);
    const Tokens prompt = tokenise(model, question.prompt);
    const auto parted = std::mismatch(whole.begin(), whole.end(), prompt.begin(), prompt.end()).first;
    from = (parted - whole.begin()) - 1;
    const llama_vocab * vocab = llama_model_get_vocab(model);
    if (llama_vocab_get_add_bos(vocab)) {
        whole.insert(whole.begin(), llama_vocab_bos(vocab));
        from++;
    }
    return whole;
}

class Run {
  public:
    explicit Run(const EvalOptions & some_options)
        : options(some_options),
          model(options.f32 ? load_in_f32(options.model, options.lab.threads) : load_model(options.model, true)),
          file("eval", settings_of(options), options.resume, [this](const nlohmann::json & line) { take(line); }) {}

    Evaluated all();

  private:
    void take(const nlohmann::json & line);
    void make_questions();
    void run_windows(Evaluated & result);
    void run_questions(Evaluated & result);
    Lab & laboratory();
    Lab::Say say(const std::string & what);

    const EvalOptions & options;
    std::vector<Window> finished_windows;
    std::vector<Answer> finished_answers;
    llama_model_ptr model;
    ResumeFile file;
    std::vector<Question> questions;
    std::optional<TextWindows> text;
    std::unique_ptr<Lab> lab; // only where something is left to do
    Progress progress;
};

void Run::take(const nlohmann::json & line) {
    if (line.contains("task")) {
        finished_answers.push_back(report::answer_from(line));
    } else {
        finished_windows.push_back(report::eval_window_from(line));
    }
}

void Run::make_questions() {
    if (options.retrieval) {
        questions = evaluate::make_questions(options.questions, [this](const std::string & words) {
            return static_cast<int64_t>(tokenise(model.get(), words).size());
        });
    }
}

Lab & Run::laboratory() {
    if (!lab) {
        LabOptions wanted = options.lab;
        wanted.context = options.text.empty() ? 0 : options.length;
        for (const int64_t length : options.retrieval ? options.questions.lengths : std::vector<int64_t>()) {
            wanted.context = std::max(wanted.context, length + 1); // a first token of the model's own
        }
        lab = std::make_unique<Lab>(model.get(), wanted);
    }
    return *lab;
}

Lab::Say Run::say(const std::string & what) {
    return [this, what](int64_t tokens, const std::string & method) {
        progress.show(fmt::format("{}, token {}, {}", what, tokens, method));
    };
}

void Run::run_windows(Evaluated & result) {
    if (!text) {
        return;
    }
    const int64_t count = text->count(options.length, options.windows);
    for (int64_t index = 0; index < count && !interrupted(); index++) {
        const auto known = std::find_if(finished_windows.begin(), finished_windows.end(),
                                        [&](const Window & window) { return window.index == index; });
        Window window;
        if (known != finished_windows.end()) {
            window = *known;
        } else {
            window.index = index;
            const std::string what = fmt::format("window {} of {}", index + 1, count);
            if (!laboratory().run(text->window(options.length, index), options.length / 2, say(what), window)) {
                return;
            }
            file.add(report::eval_window_json(window));
        }
        result.evaluation.windows.push_back(std::move(window));
        result.done++;
    }
}

void Run::run_questions(Evaluated & result) {
    for (size_t i = 0; i < questions.size() && !interrupted(); i++) {
        const Question & question = questions[i];
        const auto known = std::find_if(finished_answers.begin(), finished_answers.end(), [&](const Answer & answer) {
            return answer.task == question.task && answer.length == question.length && answer.index == question.index;
        });
        Answer answer = { question.task, question.length, question.depth, question.index, 0, false, 0, {}, {} };
        if (known != finished_answers.end()) {
            answer = *known;
        } else {
            int64_t from = 0;
            const Tokens tokens = question_tokens(model.get(), question, from);
            Window ignored;
            const std::string what = fmt::format("question {} of {} ({})", i + 1, questions.size(), question.task);
            if (!laboratory().run(tokens, from, say(what), ignored, &answer)) {
                return;
            }
            answer.tokens = static_cast<int32_t>(static_cast<int64_t>(tokens.size()) - 1 - from);
            answer.dense_right = answer.dense_tokens_right == answer.tokens;
            for (size_t method = 0; method < answer.right.size(); method++) {
                answer.right[method] = answer.tokens_right[method] == answer.tokens ? 1 : 0;
            }
            file.add(report::answer_json(answer));
        }
        result.evaluation.answers.push_back(std::move(answer));
        result.done++;
    }
}

Evaluated Run::all() {
    Evaluated result;
    result.evaluation.labels = labels_of(options.lab);
    result.architecture = metadata(model.get(), "general.architecture");
    result.weights = description_of(model.get());
    make_questions();
    if (!options.text.empty()) {
        text.emplace(model.get(), options.text);
        result.wanted = text->count(options.length, options.windows);
        if (result.wanted < options.windows) {
            fmt::print(stderr, "cascade: the text has {} windows of {} tokens, not {}\n", result.wanted, options.length,
                       options.windows);
        }
    }
    result.wanted += static_cast<int64_t>(questions.size());
    run_windows(result);
    run_questions(result);
    progress.clear();
    result.kept_in = file.path();
    return result;
}

} // namespace

Evaluated evaluate_methods(const EvalOptions & options) {
    const auto & methods = options.lab.methods;
    if (std::any_of(methods.begin(), methods.end(), [](const MethodSpec & method) { return method.by_plugin(); })) {
        find_plugin(); // before the engine does
    }
    start_engine();
    stop_on_interrupt();
    return Run(options).all();
}

} // namespace cascade::cli
