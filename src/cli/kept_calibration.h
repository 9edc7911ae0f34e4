// What a calibration has done so far, in files of the user's cache, so that one that was stopped or killed goes on to
// the same result. Each file is written whole or not at all.
#pragma once

#include "subspace/basis.h"

#include <optional>
#include <string>
#include <vector>

namespace cascade::cli {

// Running moments: of which group of inputs, and over how many passes.
struct MomentsSoFar {
    int64_t group = 0;
    int64_t passes = 0;
    double prefill_seconds = 0.0;
    double moments_seconds = 0.0;
};

struct KeptBasis {
    subspace::Basis basis;
    subspace::Inheritance inherited; // by the layer below's basis; energy below 0: there is none
};

class KeptCalibration {
  public:
    // `settings`: everything that the result depends on. Without `resume` what is there is forgotten.
    KeptCalibration(const std::string & settings, bool resume);

    const std::string & date() const { return begun; } // when it was begun

    void save(const MomentsSoFar & so_far, const std::vector<subspace::SecondMoments> & moments);
    // Into moments of the same widths; none where there is nothing for this group.
    std::optional<MomentsSoFar> load(int64_t group, std::vector<subspace::SecondMoments> & moments) const;

    void save(size_t input, const KeptBasis & basis);
    bool has(size_t input) const;
    std::optional<KeptBasis> load(size_t input) const;

    void forget();

  private:
    std::string basis_path(size_t input) const;

    std::string directory;
    std::string begun;
};

} // namespace cascade::cli
