// Rows of a model's weights as floats, from its file: what the engine has in memory may be rearranged.
#pragma once

#include "subspace/products.h"

#include "ggml.h"
#include "llama-cpp.h"

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cascade::cli {

class ModelWeights {
  public:
    // All files of a split model. Throws std::runtime_error with a message for a person.
    ModelWeights(const llama_model * model, const std::string & path);

    struct Shape {
        int64_t columns = 0; // inputs
        int64_t rows = 0;    // outputs
    };
    Shape shape(const std::string & weight) const;

    // Throws std::runtime_error where the file can't be read, or its type has no way to floats.
    void read(const std::string & weight, int64_t first_row, int64_t count, float * out);

    // Some rows after the other, each time as many as are read well together; false: `take` doesn't want more.
    bool each(const std::string & weight, const std::function<bool(const subspace::MatrixView & rows)> & take);

  private:
    struct Place {
        size_t file = 0;
        uint64_t offset = 0;
        ggml_type type = GGML_TYPE_F32;
        Shape shape;
    };
    const Place & place(const std::string & weight) const;

    std::vector<std::ifstream> files;
    std::map<std::string, Place> places;
    std::vector<char> raw;
};

} // namespace cascade::cli
