// The last step of a calibration: bases and the weights' images, written into the sidecar one by one.
#pragma once

#include "cli/calibrate_run.h"
#include "cli/kept_calibration.h"
#include "cli/model_weights.h"
#include "cli/progress.h"
#include "sidecar/write_subspaces.h"
#include "subspace/image.h"

#include <functional>

namespace cascade::cli {

class CalibrationImages {
  public:
    CalibrationImages(const CalibrateOptions & some_options, const CalibrateResult & some_result,
                      const std::vector<uint64_t> & some_fingerprints, ModelWeights & some_weights);

    // false: interrupted. Throws std::runtime_error with a message for a person.
    bool write(const std::function<KeptBasis(size_t input)> & basis_of, Team & team, Progress & progress);

  private:
    sidecar::Sidecar binding() const;
    sidecar::Subspace described(const CalibratedInput & input);
    double rough_error(const std::vector<std::string> & of_weights);
    std::vector<float> without_rough(const subspace::MatrixView & rows) const;
    enum class Part { image, rough, rest };
    bool write_part(Part part, const std::string & weight, const subspace::ImageOf & image,
                    sidecar::SubspaceWriter & to, Team & team);

    const CalibrateOptions & options;
    const CalibrateResult & result;
    const std::vector<uint64_t> & fingerprints;
    ModelWeights & weights;
};

// The points at which energies are shown and kept.
std::vector<int64_t> energy_points(const CalibratedInput & input);
double median_of(std::vector<float> values); // not a number where there is none
double share_within(const std::vector<float> & values, double bound);

} // namespace cascade::cli
