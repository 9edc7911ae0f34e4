// cascade doctor: the sidecar. Its reader takes files from anywhere, so no child process is needed for it.
#include "cli/doctor.h"
#include "cli/engine.h"
#include "cli/sha256.h"
#include "sidecar/subspaces.h"

#include <fmt/format.h>
#include <utility>

namespace cascade::cli {

namespace {

std::string tuning_of(const sidecar::Sidecar & sidecar) {
    if (sidecar.near.epsilons.empty() && sidecar.balanced.epsilons.empty()) {
        return "not tuned";
    }
    std::string text = fmt::format("tuned on {} ({} tokens scored, windows of {}), {}", sidecar.text, sidecar.scored,
                                   sidecar.context, sidecar.date);
    for (const auto & [name, tuned] : { std::pair("near", &sidecar.near), std::pair("balanced", &sidecar.balanced) }) {
        text += tuned->epsilons.empty()
                    ? fmt::format("; {} not tuned", name)
                    : fmt::format("; {}: KL {:.4f}, top-1 {:.1f} %", name, tuned->kl, 100.0F * tuned->top1);
    }
    return text;
}

std::string described(const sidecar::SubspaceFile & file) {
    std::string text = fmt::format("{} layers, {}", file.sidecar().fingerprints.size(), tuning_of(file.sidecar()));
    if (!file.subspaces().empty()) {
        const sidecar::Calibration & made = file.calibration();
        text += fmt::format("; {} subspaces, calibrated on {} ({} tokens), {}", file.subspaces().size(), made.text,
                            made.tokens, made.date);
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
    const sidecar::Opened opened = sidecar::open_subspaces(settings.sidecar);
    if (!opened.file) {
        check.health = Health::problem;
        check.finding = settings.sidecar + " " + opened.complaint;
        check.remedy = "make one with 'cascade tune' or 'cascade calibrate', or unset GGML_CASCADE_SIDECAR";
        return { check };
    }
    check.finding = described(*opened.file);
    if (!model.empty() && sha256_of_file(model) != opened.file->sidecar().model_sha256) {
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
