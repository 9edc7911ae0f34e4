// Writing a sidecar with subspaces: its head first, the tensors one by one as they are made, none kept.
#pragma once

#include "sidecar/subspaces.h"
#include "sidecar/sum.h"

#include <fstream>

namespace cascade::sidecar {

struct PlannedTensor {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    int64_t columns = 0;
    int64_t rows = 0;
};

// The tensors of subspaces, in their order. Views' data may be missing.
std::vector<PlannedTensor> tensors_of(std::span<const Subspace> subspaces);

// Whole or not at all: into a file beside the wanted one, which it becomes when all is there.
class SubspaceWriter {
  public:
    SubspaceWriter(const std::string & path, const Sidecar & sidecar, const Calibration & calibration,
                   std::span<const Subspace> subspaces);
    ~SubspaceWriter();
    SubspaceWriter(const SubspaceWriter &) = delete;
    SubspaceWriter & operator=(const SubspaceWriter &) = delete;

    // The next tensor's bytes, or some of them: rows follow each other, tensors too.
    void add(std::span<const std::byte> bytes);

    // false: it can't be written, or not all tensors were added.
    bool finish();

  private:
    std::vector<std::byte> head() const;
    void pad();

    std::string path;
    std::string part;
    Sidecar binding;
    Calibration made;
    std::vector<Subspace> described;
    std::vector<PlannedTensor> planned;
    std::ofstream file;
    size_t tensor = 0;
    uint64_t in_tensor = 0;      // bytes of it that are written
    std::vector<std::byte> rest; // not yet a whole step of the sum
    DataSum sum;
    bool finished = false;
};

// Like save (sidecar.h); subspaces that a file in this place has for the same model stay.
bool save_beside_subspaces(const Sidecar & sidecar, const std::string & path);

// The same in memory, for subspaces whose views have their data.
std::vector<std::byte> encode(const Sidecar & sidecar, const Calibration & calibration,
                              std::span<const Subspace> subspaces);

} // namespace cascade::sidecar
