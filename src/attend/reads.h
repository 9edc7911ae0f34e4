// What a method took, and what it gave.
#pragma once

namespace cascade {

// How much a method read, summed over layers, KV heads and blocks of queries.
struct Reads {
    double past = 0.0;        // tokens that were in reach, beyond the exact window
    double read = 0.0;        // of them read exactly, plus clusters read in their members' place
    double bytes = 0.0;       // of keys, values and index that this takes
    double dense_bytes = 0.0; // what all of the past takes, in a 16-bit cache

    Reads & operator+=(const Reads & other) {
        past += other.past;
        read += other.read;
        bytes += other.bytes;
        dense_bytes += other.dense_bytes;
        return *this;
    }
};

// The attention's output beside the dense one of the same queries, keys and values.
struct LayerError {
    double difference = 0.0; // sum of squares
    double norm = 0.0;       // sum of squares of the dense output
    bool left_alone = true;  // the engine's own attention ran here (a sliding window, say)
};

} // namespace cascade
