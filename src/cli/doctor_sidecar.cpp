// cascade doctor: the sidecar. Its reader takes files from anywhere, so no child process is needed for it.
#include "cli/doctor.h"
#include "cli/engine.h"
#include "cli/sha256.h"
#include "sidecar/sidecar.h"

#include <fmt/format.h>
#include <utility>

namespace cascade::cli {

namespace {

std::string described(const sidecar::Sidecar & sidecar) {
    std::string text =
        fmt::format("{} layers, tuned on {} ({} tokens scored, windows of {}), {}", sidecar.fingerprints.size(),
                    sidecar.text, sidecar.scored, sidecar.context, sidecar.date);
    for (const auto & [name, tuned] : { std::pair("near", &sidecar.near), std::pair("balanced", &sidecar.balanced) }) {
        text += tuned->epsilons.empty()
                    ? fmt::format("; {} not tuned", name)
                    : fmt::format("; {}: KL {:.4f}, top-1 {:.1f} %", name, tuned->kl, 100.0F * tuned->top1);
    }
    return text;
}

} // namespace

Checks check_sidecar(const std::string & model, const Settings & settings) {
    if (settings.sidecar.empty()) {
        return {};
    }
    Check check;
    check.name = "sidecar";
    const sidecar::Loaded loaded = sidecar::load(settings.sidecar);
    if (!loaded.sidecar) {
        check.health = Health::problem;
        check.finding = settings.sidecar + " " + loaded.complaint;
        check.remedy = "make one with 'cascade tune', or unset GGML_CASCADE_SIDECAR";
        return { check };
    }
    check.finding = described(*loaded.sidecar);
    if (!model.empty() && sha256_of_file(model) != loaded.sidecar->model_sha256) {
        check.health = Health::note;
        check.finding += fmt::format("; made for another file than {}", file_name(model));
        check.remedy =
            "layers with the same normalisation weights are taken all the same, the others at the mode's own "
            "epsilon; 'cascade tune' makes one for this file";
    } else if (settings.epsilon >= 0.0F || !settings.approximates()) {
        check.health = Health::note;
        check.finding += settings.approximates() ? "; GGML_CASCADE_EPS overrides it" : "; this mode reads none";
        check.remedy = settings.approximates() ? "unset GGML_CASCADE_EPS" : "set GGML_CASCADE to near or balanced";
    }
    return { check };
}

} // namespace cascade::cli
