// Linear maps that share an input, computed through its subspace where a token's gate lets it: nodes for a shadow graph
// that stand in the place of the maps' own. All products are the engine's: the coordinates g = V^T x once for the
// input; then, for each map, the image W V times g for tokens that pass; for those that a rough copy W' is good enough
// for, W' x and the image of what it lacks; and the map itself, on rows gathered from the input, for the others. What
// doesn't happen in a batch isn't computed, and where no token passes, the map's own node runs as it would have.
#pragma once

#include "graph/model_graph.h"
#include "subspace/gate.h"

#include "ggml-impl.h"

#include <vector>

namespace cascade::graph {

// In the layout of a ggml tensor of ne = { columns, rows }.
struct Matrix {
    ggml_type type = GGML_TYPE_F32;
    int64_t columns = 0;
    int64_t rows = 0;
    const void * data = nullptr;
};

struct GatedMap {
    int node = -1; // MUL_MAT, in the original graph
    Matrix image;  // { k, outputs }
    Matrix rough;  // { width, outputs }; no data: there is none
    Matrix rest;   // { k, outputs }: the image of what the rough copy lacks
};

struct GatedMaps {
    Matrix basis; // { width of the input, k }: rows of unit length
    std::vector<GatedMap> maps;
    subspace::GateBounds bounds;

    bool has_rough() const { return bounds.rough > 0.0F; } // then every map has one
};

// Why an input can't be computed this way; nullptr: it can.
const char * gating_objection(const ggml_cgraph & graph, const GatedMaps & wanted);

// How many floats of scratch an input needs: for rows that are gathered and scattered. Inputs that are computed one
// after the other may share it.
int64_t scratch_floats(const ggml_cgraph & graph, const GatedMaps & wanted);

class GatedInput {
  public:
    // `scratch`: at a cache line. The matrices and the original's tensors must outlive it. May throw std::bad_alloc.
    GatedInput(const ggml_cgraph & original, GatedMaps wanted, float * scratch);

    GatedInput(const GatedInput &) = delete; // its nodes point into it
    GatedInput & operator=(const GatedInput &) = delete;

    // What stands in the place of the i-th map's node.
    std::vector<ggml_tensor *> nodes_instead(size_t map);
    const GatedMaps & gated() const { return wanted; }

    struct Counts {
        int64_t tokens = 0;
        int64_t passed = 0;
        int64_t rough = 0;
    };
    // Of the last computation. Makes ready for the next one.
    Counts finish();

  private:
    struct Map {
        ggml_tensor image = {};
        ggml_tensor rough = {};
        ggml_tensor rest = {};
        ggml_tensor through = {};       // image times coordinates
        ggml_tensor through_rough = {}; // rough copy times input
        ggml_tensor through_rest = {};  // rest times coordinates
        ggml_tensor exactly = {};       // the map's own node
        ggml_tensor scatter = {};
        float * output = nullptr; // of the original node
        const GatedInput * of = nullptr;
    };

    static void run_gate(ggml_tensor * node, int part, int parts, void * self) noexcept;
    static void run_scatter(ggml_tensor * node, int part, int parts, void * self) noexcept;
    void make_map(const ggml_tensor & original, const GatedMap & from, Map & map);
    void gate();
    void gather();
    int64_t refused_together() const;
    void direct(Map & map);
    void apart(Map & map);

    const GatedMaps wanted;
    const ggml_tensor * input;
    int64_t tokens;
    subspace::GatedTokens split;
    ggml_tensor basis = {};
    ggml_tensor coordinates = {}; // a node: basis times input
    ggml_tensor gate_node = {};
    ggml_tensor passed_rows = {};   // of coordinates, gathered
    ggml_tensor rest_rows = {};     // of coordinates, for the rough copies' rest
    ggml_tensor rough_rows = {};    // of the input
    ggml_tensor refused_rows = {};  // of the input
    float * outputs = nullptr;      // scratch: those of tokens that passed, then rough ones', then the others'
    float * rest_outputs = nullptr; // scratch: to be added to the rough ones'
    std::vector<Map> maps;
};

} // namespace cascade::graph
