// Unit rows packed for the kernel, and products of a block of rows with many columns that keep only what is asked for.
#pragma once

#include "cascade/cover.h"
#include "cover/kernel.h"
#include "cover/unit_row.h"

#include <atomic>
#include <hwy/aligned_allocator.h>
#include <span>
#include <vector>

namespace cascade::cover {

using Floats = hwy::AlignedFreeUniquePtr<float[]>;

// Throws std::bad_alloc.
Floats aligned_floats(int64_t count);

using Count = std::atomic<uint64_t>; // multiply-adds, counted by all threads

// Columns of products: unit rows in panels, each with the token it belongs to.
class Columns {
  public:
    explicit Columns(int64_t row_size) : size(row_size) {}

    // Takes out all but the first `kept` columns.
    void shrink(int32_t kept) { tokens.resize(static_cast<size_t>(kept)); }

    void add_tokens(const TokenRows & rows, std::span<const int32_t> tokens, Team & team);

    int32_t count() const { return static_cast<int32_t>(tokens.size()); }
    int32_t token(int32_t column) const { return tokens[static_cast<size_t>(column)]; }
    int32_t count_before(int32_t token) const; // columns of smaller tokens; they must have been added in order
    int32_t panel_count() const { return (count() + kernel_in_use->columns - 1) / kernel_in_use->columns; }
    const float * panel(int32_t index) const { return panels[static_cast<size_t>(index)].get(); }

  private:
    friend class RowBlock;
    void add_room(std::span<const int32_t> added);
    void fill_panel(const TokenRows & rows, int64_t panel, int64_t first);
    float * values_of(int64_t column) {
        return panels[static_cast<size_t>(column / kernel_in_use->columns)].get() + (column % kernel_in_use->columns);
    }

    int64_t size;
    const Kernel * kernel_in_use = &kernel();
    std::vector<Floats> panels;
    std::vector<int32_t> tokens;
};

// A block of rows, packed. Its parts are independent, for threads to share.
class RowBlock {
  public:
    RowBlock(int64_t row_size, int64_t most_rows);

    // The tokens of the block from now on; at most `most_rows`. `rows` must live as long as they are used.
    void set(const TokenRows & rows, std::span<const int32_t> tokens);

    int64_t count() const { return static_cast<int64_t>(tokens.size()); }
    int64_t parts() const { return (count() + part_rows - 1) / part_rows; }
    int32_t token(int64_t i) const { return tokens[static_cast<size_t>(i)]; }

    // To be called for each part before anything else.
    void pack(int64_t part);

    // The best of the first limit[i] columns for each row i of the part, into best[i], unless that is better already.
    void find_best(int64_t part, const Columns & columns, std::span<const int32_t> limit, Sign sign,
                   std::span<Best> best, Count & multiply_adds);

    // Products of the part's rows with the columns of a panel and those after it, up to their own tokens and some
    // more; row i at out + i * stride, which has room for whole panels.
    void multiply(int64_t part, const Columns & columns, int32_t first_panel, float * out, int64_t stride,
                  Count & multiply_adds);

    // Adds some of the rows, as they were packed, to the columns.
    void copy_to(Columns & columns, std::span<const int64_t> chosen, Team & team) const;

  private:
    struct Part {
        int64_t first; // rows
        int64_t last;
        int64_t packs;
        float * tile; // products with one panel
    };
    Part part_at(int64_t index) const;
    void take_best(const Part & part, int32_t start, std::span<const int32_t> limit, Sign sign,
                   std::span<Best> best) const;
    uint64_t multiply_panel(const Part & part, const float * panel) const;
    float * row_at(int64_t i) const; // packed
    int64_t row_step() const { return ops.rows * segment; }

    static constexpr int64_t part_packs = 8; // so many use a panel while the nearest cache holds it

    const int64_t size;
    const Kernel & ops = kernel();
    const int64_t part_rows = part_packs * ops.rows;
    const int64_t pack_floats = (size + segment - 1) / segment * segment * ops.rows;
    Floats packed;
    Floats tiles;
    TokenRows source;
    std::vector<int32_t> tokens;
};

} // namespace cascade::cover
