// A mode of the plugin as a subject of the laboratory: a context of its own, in which the plugin does what it does in
// any program.
#pragma once

#include "attend/methods.h"
#include "attend/reads.h"
#include "cli/activations.h"

#include <memory>
#include <string>

namespace cascade::cli {

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

  private:
    std::string statistics; // file
    std::unique_ptr<ActivationStream> context;
    Reads before;
};

} // namespace cascade::cli
