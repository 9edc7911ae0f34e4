// A mode of the plugin as a subject of the laboratory: a context of its own, in which the plugin does what it does in
// any program.
#pragma once

#include "attend/methods.h"
#include "attend/reads.h"
#include "cli/activations.h"

#include <memory>
#include <string>

namespace cascade::cli {

// Contexts made from now on, until the next mode is asked for, compute as the bare engine does, to the bit: also where
// the plugin is loaded already.
void make_contexts_bare();

class PluginMode {
  public:
    // Loads the plugin where it isn't yet: contexts made from then on have it, in the mode that was asked for last.
    // Throws std::runtime_error with a message for a person.
    PluginMode(llama_model * model, const StreamOptions & options, const MethodSpec & method);
    ~PluginMode();
    PluginMode(const PluginMode &) = delete;
    PluginMode & operator=(const PluginMode &) = delete;

    ActivationStream & stream() { return *context; }
    const ActivationStream & stream() const { return *context; }

    void start();        // a new text
    Reads reads() const; // of this text so far

    // Whether the sidecar that the method names was understood, and knows this model. After some tokens.
    bool uses_sidecar() const;

  private:
    std::string statistics; // file
    std::unique_ptr<ActivationStream> context;
    Reads before;
};

} // namespace cascade::cli
