#include "attend/joint/audit.h"

#include "attend/kernels/kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::attend {

namespace {

constexpr double rounding = 1e-4; // of the longest value: what sums of floats may be off by

double length(std::span<const float> values) {
    double sum = 0.0;
    for (const float value : values) {
        sum += static_cast<double>(value) * value;
    }
    return std::sqrt(sum);
}

// One query row of one head, in double.
class AuditedRow {
  public:
    AuditedRow(const Attention & an_attention, const CoveredRun & a_run, int64_t a_head, int64_t a_query)
        : a(an_attention), run(a_run), head(a_head), query(a_query), kv_head(head / run.group(a)),
          values(static_cast<size_t>(a.value_size)), keys(static_cast<size_t>(a.key_size)),
          query_row(static_cast<size_t>(a.key_size)), exact_sum(static_cast<size_t>(a.value_size)) {
        a.query.read(query, head, run.queries->stream, a.key_size, query_row.data());
        if (a.round_query != nullptr) {
            a.round_query(query_row.data(), a.key_size);
        }
        for (float & value : query_row) {
            value *= a.pre_scale * a.post_scale * log2_e;
        }
        if (a.sinks != nullptr) {
            reference = a.sinks[head] * log2_e;
        }
    }

    void look(std::span<const int32_t> opened, AuditSums & sums) {
        closed.assign(static_cast<size_t>(run.cover->cells()), 0);
        for (int64_t cell = 0; cell < run.cover->cells(); cell++) {
            closed[static_cast<size_t>(cell)] = run.cover->has(cell) ? 1 : 0;
        }
        for (const int32_t cell : opened) {
            closed[static_cast<size_t>(cell)] = 0;
        }
        read_logits();
        find_speakers();
        weigh_all();
        compare(sums);
    }

  private:
    double logit_of(int64_t cell) {
        a.key.read(cell, kv_head, run.queries->stream, a.key_size, keys.data());
        double sum = 0.0;
        for (size_t i = 0; i < keys.size(); i++) {
            sum += static_cast<double>(keys[i]) * query_row[i];
        }
        return sum;
    }

    void read_logits() {
        logits.assign(static_cast<size_t>(a.tokens), -std::numeric_limits<double>::infinity());
        const auto set = [&](int64_t cell, double added) {
            logits[static_cast<size_t>(cell)] = logit_of(cell) + added;
            reference = std::max(reference, logits[static_cast<size_t>(cell)]);
        };
        for (const int32_t cell : run.exact) {
            const double added = mask_value(a, run.queries->stream, query, cell);
            if (added > -std::numeric_limits<double>::infinity()) {
                set(cell, added * log2_e);
            }
        }
        for (int64_t cell = 0; cell < std::min(a.tokens, run.cover->cells()); cell++) {
            if (run.cover->has(cell)) {
                set(cell, 0.0);
            }
        }
    }

    // What each closed member of a cluster weighs.
    void find_speakers() {
        speakers.assign(static_cast<size_t>(run.cover->clusters()), 0.0);
        std::vector<double> counts(speakers.size(), 0.0);
        for (int64_t cell = 0; cell < run.cover->cells(); cell++) {
            if (closed[static_cast<size_t>(cell)] != 0) {
                const auto cluster = static_cast<size_t>(run.cover->cluster_of(cell));
                speakers[cluster] += logits[static_cast<size_t>(cell)];
                counts[cluster] += 1.0;
            }
        }
        for (size_t c = 0; c < speakers.size(); c++) {
            speakers[c] = counts[c] > 0.0 ? std::exp2((speakers[c] / counts[c]) - reference) : 0.0;
        }
    }

    // The largest that a closed token's weight and its speaker's may be apart, by what the rough keys say.
    double uncertainty(int64_t cell, double speaker, const cover::RoughQuery & rough, const float * rough_logit) const {
        const cover::RoughTiles tiles = run.rough->tiles(kv_head);
        const double error = static_cast<double>(rough.error) * tiles.steps[cell];
        const double low = std::exp2(rough_logit[cell] - error - reference);
        const double high = std::exp2(rough_logit[cell] + error - reference);
        return std::max(std::fabs(high - speaker), std::fabs(low - speaker));
    }

    void weigh_all() {
        std::vector<int8_t> rounded(query_row.size());
        const cover::RoughQuery rough = run.rough->round(kv_head, query_row.data(), 1.0F, rounded.data());
        const int64_t cells = run.cover->cells();
        std::vector<float> rough_logits(static_cast<size_t>(cells));
        cover::rough_plain.logits(run.rough->tiles(kv_head), 0, cells / cover::cells_of_tile, { &rough, 1 },
                                  rough_logits.data(), cells);
        std::vector<double> lengths;
        std::vector<double> apart;
        for (int64_t cell = 0; cell < a.tokens; cell++) {
            const double weight = std::exp2(logits[static_cast<size_t>(cell)] - reference);
            if (weight == 0.0) {
                continue;
            }
            a.value.read(cell, kv_head, run.queries->stream, a.value_size, values.data());
            for (size_t i = 0; i < values.size(); i++) {
                exact_sum[i] += weight * values[i];
            }
            exact_weight += weight;
            const double of_value = length(values);
            longest = std::max(longest, of_value);
            double used = weight;
            if (closed[static_cast<size_t>(cell)] != 0) {
                used = speakers[static_cast<size_t>(run.cover->cluster_of(cell))];
                lengths.push_back(of_value);
                apart.push_back(uncertainty(cell, used, rough, rough_logits.data()));
                const double share = std::exp2(rough_logits[static_cast<size_t>(cell)] - reference);
                squares += share * share * of_value * of_value;
            }
            used_weight += used;
        }
        for (size_t i = 0; i < apart.size(); i++) {
            bound += apart[i] * (lengths[i] + longest);
        }
    }

    void compare(AuditSums & sums) const {
        const double sink = a.sinks != nullptr ? std::exp2((a.sinks[head] * log2_e) - reference) : 0.0;
        const double exact_total = exact_weight + sink;
        const double used_total = used_weight + sink;
        if (!(exact_total > 0.0) || !(used_total > 0.0)) {
            return;
        }
        const float * out = a.output(query, head, run.queries->stream);
        double difference = 0.0;
        double norm = 0.0;
        for (size_t i = 0; i < exact_sum.size(); i++) {
            const double exact = exact_sum[i] / exact_total;
            difference += (exact - out[i]) * (exact - out[i]);
            norm += exact * exact;
        }
        const double observed = std::sqrt(difference);
        const double certain = (bound / used_total) + (rounding * longest);
        sums.rows++;
        sums.above_bound += observed > certain ? 1 : 0;
        sums.observed += observed;
        sums.estimated += std::sqrt(squares) / exact_total;
        sums.bound += certain;
        sums.output += std::sqrt(norm);
        sums.worst_of_bound = std::max(sums.worst_of_bound, observed / certain);
    }

    const Attention & a;
    const CoveredRun & run;
    const int64_t head;
    const int64_t query;
    const int64_t kv_head;
    double reference = -std::numeric_limits<double>::infinity(); // the largest logit
    std::vector<float> values;
    std::vector<float> keys;
    std::vector<float> query_row;
    std::vector<double> exact_sum;
    std::vector<double> logits;   // by cell, in powers of two
    std::vector<double> speakers; // by cluster
    std::vector<uint8_t> closed;  // by cell
    double exact_weight = 0.0;
    double used_weight = 0.0;
    double longest = 0.0;
    double squares = 0.0;
    double bound = 0.0;
};

} // namespace

void Audit::check(const Attention & a, const CoveredRun & run, const OpenedTokens & opened) {
    for (int64_t i = 0; i < run.queries->count; i++) {
        if (seen++ % one_in != 0) {
            continue;
        }
        for (int64_t head = 0; head < a.heads; head++) {
            AuditedRow(a, run, head, run.queries->first + i).look(opened.of(i, head / run.group(a)), all);
        }
    }
}

} // namespace cascade::attend
