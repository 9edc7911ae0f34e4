// What a calibration has done so far, in files of the user's cache, so that one that was stopped or killed goes on to
// the same result. Each file is written whole or not at all.
#pragma once

#include "subspace/output_basis.h"

#include <optional>
#include <string>
#include <vector>

namespace cascade::cli {

// Running moments: of which inputs, from the first on, and over how many passes.
struct MomentsSoFar {
    int64_t first_input = 0;
    int64_t passes = 0;
    double prefill_seconds = 0.0;
    double moments_seconds = 0.0;
};

struct KeptBasis {
    subspace::Basis basis;
    subspace::Inheritance inherited; // by the layer below's basis; energy below 0: there is none
    std::vector<float> guess;        // what an input is taken for, one row for each vector; empty: the basis itself
    subspace::OutputLoss loss;       // share below 0: not looked at

    subspace::MatrixView guess_view() const {
        return guess.empty() ? basis.view()
                             : subspace::MatrixView{ guess.data(), basis.count(), basis.width, basis.width };
    }
};

class KeptCalibration {
  public:
    // Settings: everything that moments depend on, and what bases depend on beside it. Without `resume` what is there
    // is forgotten.
    KeptCalibration(const std::string & moment_settings, const std::string & basis_settings, bool resume);

    const std::string & date() const { return begun; } // when it was begun

    void save(const MomentsSoFar & so_far, const std::vector<subspace::SecondMoments> & moments);
    // Into moments of the same widths; none where there is nothing for these inputs.
    std::optional<MomentsSoFar> load(int64_t first_input, std::vector<subspace::SecondMoments> & moments) const;

    void save(size_t input, const KeptBasis & basis);
    bool has(size_t input) const;
    std::optional<KeptBasis> load(size_t input) const;

    void forget_bases();
    void forget(); // everything

  private:
    std::string basis_path(size_t input) const;

    std::string directory; // of the moments
    std::string bases;
    std::string begun;
};

} // namespace cascade::cli
