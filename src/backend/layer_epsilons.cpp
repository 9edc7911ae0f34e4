#include "backend/layer_epsilons.h"

#include "backend/known_layer.h"
#include "backend/log.h"

namespace cascade::backend {

LayerEpsilons::LayerEpsilons(const Settings & used) noexcept : settings(used) {
    if (settings.sidecar.empty() || !settings.approximates()) {
        return;
    }
    try {
        if (settings.epsilon >= 0.0F) {
            why_not = "GGML_CASCADE_EPS is set";
            return;
        }
        sidecar::Loaded loaded = sidecar::load(settings.sidecar);
        file = std::move(loaded.sidecar);
        why_not = std::move(loaded.complaint);
        if (!file) {
            say_once(Notice::sidecar,
                     "GGML_CASCADE_SIDECAR=" + settings.sidecar + " " + why_not + "; the mode's own epsilon is used");
        }
    } catch (...) {
        file.reset();
        say_once(Notice::sidecar, "the sidecar can't be used: out of memory");
    }
}

float LayerEpsilons::of(const graph::Layer & layer) {
    if (!file) {
        return settings.gate();
    }
    const sidecar::Tuned & tuned = settings.mode == Mode::near ? file->near : file->balanced;
    if (const std::string why = stranger_to(*file, layer); !why.empty()) {
        layers_unmatched++;
        say_once(Notice::sidecar, why + "; the mode's own epsilon is used for such layers");
        return settings.gate();
    }
    layers_matched++;
    return tuned.epsilons.empty() ? settings.gate() : tuned.epsilons[static_cast<size_t>(layer.index)];
}

} // namespace cascade::backend
