#include "subspace/image.h"

namespace cascade::subspace {

ImageOf::ImageOf(const MatrixView & basis)
    : width(basis.columns), vectors(basis.rows), columns(static_cast<size_t>(basis.rows * basis.columns)) {
    for (int64_t k = 0; k < vectors; k++) {
        for (int64_t i = 0; i < width; i++) {
            columns[static_cast<size_t>((i * vectors) + k)] = basis.row(k)[i];
        }
    }
}

void ImageOf::rows(const MatrixView & weights, float * out, Team & team) const {
    multiply(weights, false, { columns.data(), width, vectors, vectors }, out, team);
}

} // namespace cascade::subspace
