// The joint method for one run of queries and one KV head, stated in double over the cache itself: it shares with the
// code under test the cover's clusters and the plain rough logits, nothing else.
#pragma once

#include "attend/joint/work.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <vector>

namespace cascade::test {

enum class PastMass { rough, means }; // how the gate weighs the past: see FewRows and ManyRows

class JointStatement {
  public:
    JointStatement(const Attention & attention, const attend::QueryRun & queries, const cover::CellCover & a_cover,
                   const cover::RoughKeys & rough, int64_t kv_head, PastMass past_mass)
        : a(attention), run(queries), cover(a_cover), head(kv_head) {
        keys = read(a.key, a.key_size);
        values = read(a.value, a.value_size);
        for (int64_t token = 0; token < a.tokens; token++) {
            if (cover.has(token)) {
                past.push_back(token);
            }
        }
        const int64_t group = a.heads / a.kv_heads;
        for (int64_t r = 0; r < run.count * group; r++) {
            rows.push_back(read_row(run.first + (r / group), (head * group) + (r % group), rough, past_mass));
        }
    }

    // Covered tokens by the largest of their rough logits over the thresholds of a gate.
    void find_opened(float epsilon, double tie) {
        opened.clear();
        undecided.clear();
        for (size_t i = 0; i < past.size(); i++) {
            double above = -std::numeric_limits<double>::infinity();
            for (const Row & row : rows) {
                const double share = static_cast<double>(epsilon) * epsilon * row.all * row.all / row.far;
                above = std::max(above, row.rough[i] - (row.reference + std::log2(share)));
            }
            if (std::fabs(above) <= tie) {
                undecided.push_back(past[i]);
            } else if (above > 0.0) {
                opened.insert(past[i]);
            }
        }
    }

    // One decision for each of the undecided, as bits; then outputs follow.
    void decide(uint32_t bits) {
        decided = opened;
        for (size_t i = 0; i < undecided.size(); i++) {
            if (((bits >> i) & 1U) != 0) {
                decided.insert(undecided[i]);
            }
        }
        speak();
        for (Row & row : rows) {
            weigh(row);
        }
    }

    // How far the attention's output is from the statement's, and beyond what the closed tokens' weights allow, in
    // units of the values' size.
    double distance() const {
        double worst = 0.0;
        for (const Row & row : rows) {
            for (size_t i = 0; i < row.out.size(); i++) {
                worst = std::max(worst, std::fabs(row.written[i] - row.out[i]) / std::max(1.0, std::fabs(row.out[i])));
                worst = std::isfinite(row.written[i]) ? worst : std::numeric_limits<double>::infinity();
            }
        }
        return worst;
    }

    // o~ - o = (1 / Z~) * sum over closed of (w~ - w) (v - o), to the last rounding; and the bound that follows.
    void expect_identity(double tolerance) const {
        for (const Row & row : rows) {
            for (size_t i = 0; i < row.out.size(); i++) {
                const double difference = row.out[i] - row.exact[i];
                ASSERT_NEAR(difference, row.identity[i], 1e-6 * std::max(1.0, row.bound[i]));
                ASSERT_LE(std::fabs(row.written[i] - row.exact[i]),
                          row.bound[i] + (tolerance * std::max(1.0, std::fabs(row.out[i]))));
            }
        }
    }

    size_t undecided_tokens() const { return undecided.size(); }
    size_t opened_tokens() const { return decided.size(); }
    size_t row_count() const { return rows.size(); }
    int64_t speakers() const {
        return std::count_if(closed.begin(), closed.end(), [](const Speaker & s) { return s.count > 0; });
    }

  private:
    struct Row {
        std::vector<float> query;   // in powers of two
        std::vector<double> logits; // by token
        std::vector<float> rough;   // by covered token
        double reference = 0.0;     // all weights are relative to it
        double far = 0.0;           // the gate's P
        double all = 0.0;           // and Z
        double sink = 0.0;
        std::vector<float> written;
        std::vector<double> out, exact, identity, bound;
    };
    struct Speaker {
        int64_t count = 0;
        std::vector<double> key, value; // means
    };

    std::vector<std::vector<float>> read(const Rows & stored, int64_t size) const {
        std::vector<std::vector<float>> all(static_cast<size_t>(a.tokens),
                                            std::vector<float>(static_cast<size_t>(size)));
        for (int64_t token = 0; token < a.tokens; token++) {
            stored.read(token, head, run.stream, size, all[static_cast<size_t>(token)].data());
        }
        return all;
    }

    template <class Key>
    static double product(const std::vector<float> & query, const std::vector<Key> & key) {
        double sum = 0.0;
        for (size_t i = 0; i < query.size(); i++) {
            sum += static_cast<double>(query[i]) * key[i];
        }
        return sum;
    }

    Row read_row(int64_t query, int64_t query_head, const cover::RoughKeys & rough, PastMass past_mass) {
        Row row;
        row.query.resize(static_cast<size_t>(a.key_size));
        a.query.read(query, query_head, run.stream, a.key_size, row.query.data());
        const float scale = a.pre_scale * a.post_scale * attend::log2_e;
        for (float & value : row.query) {
            value *= scale;
        }
        for (int64_t token = 0; token < a.tokens; token++) {
            const double mask = attend::mask_value(a, run.stream, query, token);
            const double added = mask * std::log2(std::exp(1.0));
            row.logits.push_back(std::isinf(added) ? added
                                                   : product(row.query, keys[static_cast<size_t>(token)]) + added);
        }
        std::vector<int8_t> bytes(row.query.size());
        const cover::RoughQuery rounded = rough.round(head, row.query.data(), 1.0F, bytes.data());
        const int64_t tiles = cover.cells() / cover::cells_of_tile;
        std::vector<float> all(static_cast<size_t>(cover.cells()));
        if (!past.empty()) {
            cover::rough_plain.logits(rough.tiles(head), 0, tiles, { &rounded, 1 }, all.data(), 0);
        }
        for (const int64_t token : past) {
            row.rough.push_back(all[static_cast<size_t>(token)]);
        }
        const auto * stored =
            reinterpret_cast<const float *>(a.out + (static_cast<size_t>(query) * a.out_query_stride) +
                                            (static_cast<size_t>(query_head) * a.out_head_stride) +
                                            (static_cast<size_t>(run.stream) * a.out_stream_stride));
        row.written.assign(stored, stored + a.value_size);
        find_masses(row, query_head, past_mass);
        return row;
    }

    void find_masses(Row & row, int64_t query_head, PastMass past_mass) {
        const double sink = a.sinks != nullptr ? a.sinks[query_head] * std::log2(std::exp(1.0)) : -1e300;
        row.reference = sink;
        for (const double logit : row.logits) {
            row.reference = std::max(row.reference, logit);
        }
        row.sink = std::exp2(sink - row.reference);
        for (int64_t token = 0; token < a.tokens; token++) {
            row.all += cover.has(token) ? 0.0 : weight(row, row.logits[static_cast<size_t>(token)]);
        }
        if (past_mass == PastMass::rough) {
            for (const float logit : row.rough) {
                row.far += weight(row, logit);
            }
        } else {
            decided.clear();
            speak();
            for (const Speaker & speaker : closed) {
                row.far += speaker.count > 0
                               ? static_cast<double>(speaker.count) * weight(row, product(row.query, speaker.key))
                               : 0.0;
            }
        }
        row.all += row.far;
    }

    static double weight(const Row & row, double logit) { return std::exp2(logit - row.reference); }

    // Means of what nobody opened.
    void speak() {
        closed.assign(static_cast<size_t>(cover.clusters()), {});
        for (const int64_t token : past) {
            if (decided.count(token) == 0) {
                Speaker & speaker = closed[static_cast<size_t>(cover.cluster_of(token))];
                speaker.count++;
                add(speaker.key, keys[static_cast<size_t>(token)]);
                add(speaker.value, values[static_cast<size_t>(token)]);
            }
        }
        for (Speaker & speaker : closed) {
            for (double & sum : speaker.key) {
                sum /= static_cast<double>(speaker.count);
            }
            for (double & sum : speaker.value) {
                sum /= static_cast<double>(speaker.count);
            }
        }
    }

    static void add(std::vector<double> & sums, const std::vector<float> & row) {
        sums.resize(row.size(), 0.0);
        for (size_t i = 0; i < row.size(); i++) {
            sums[i] += row[i];
        }
    }

    void weigh(Row & row) const {
        std::vector<double> exact_weights;
        std::vector<double> weights;
        std::vector<double> of_cluster;
        for (const Speaker & speaker : closed) {
            of_cluster.push_back(speaker.count > 0 ? weight(row, product(row.query, speaker.key)) : 0.0);
        }
        for (int64_t token = 0; token < a.tokens; token++) {
            exact_weights.push_back(row.reference > -1e299 ? weight(row, row.logits[static_cast<size_t>(token)]) : 0.0);
            const bool spoken_for = cover.has(token) && decided.count(token) == 0;
            weights.push_back(spoken_for ? of_cluster[static_cast<size_t>(cover.cluster_of(token))]
                                         : exact_weights.back());
        }
        const double total = mean_of(row, weights, row.out);
        mean_of(row, exact_weights, row.exact);
        row.identity.assign(row.out.size(), 0.0);
        row.bound.assign(row.out.size(), 0.0);
        for (const int64_t token : past) {
            for (size_t i = 0; i < row.out.size() && total > 0.0; i++) {
                const auto at = static_cast<size_t>(token);
                const double part = (weights[at] - exact_weights[at]) * (values[at][i] - row.exact[i]) / total;
                row.identity[i] += part;
                row.bound[i] += std::fabs(part);
            }
        }
    }

    double mean_of(const Row & row, const std::vector<double> & weights, std::vector<double> & mean) const {
        mean.assign(static_cast<size_t>(a.value_size), 0.0);
        double total = a.sinks != nullptr ? row.sink : 0.0;
        for (size_t token = 0; token < weights.size(); token++) {
            total += weights[token];
            for (size_t i = 0; i < mean.size() && weights[token] > 0.0; i++) {
                mean[i] += weights[token] * values[token][i];
            }
        }
        for (double & value : mean) {
            value = total > 0.0 ? value / total : 0.0;
        }
        return total;
    }

    const Attention & a;
    const attend::QueryRun & run;
    const cover::CellCover & cover;
    int64_t head;
    std::vector<std::vector<float>> keys, values; // by token
    std::vector<int64_t> past;                    // covered tokens
    std::vector<Row> rows;
    std::set<int64_t> opened, decided;
    std::vector<int64_t> undecided;
    std::vector<Speaker> closed; // by cluster
};

} // namespace cascade::test
