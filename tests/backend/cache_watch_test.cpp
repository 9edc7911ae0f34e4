// What CacheWatch tells about the caches of real contexts, against their bytes: each way of changing a cache by itself,
// then random histories. Every cell whose bytes changed must have been reported; ordinary decoding reports no other.
#include "support/cache_observer.h"
#include "support/tiny_models.h"

#include "llama-cpp.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

namespace cascade::test {
namespace {

struct Variant {
    std::string model = "llama";
    bool flash = true;
    bool unified = true;
    ggml_type cache = GGML_TYPE_F16;
    bool observed = false; // by an eval callback, which has the graph computed in parts

    std::string name() const {
        return model + (observed ? "_observed" : "") + (flash ? "_flash_" : "_softmax_") +
               (unified ? "unified_" : "streams_") + ggml_type_name(cache);
    }
};

constexpr int sequences = 3;

CacheObserver & observer() {
    static CacheObserver & only = *[] {
        auto * made = new CacheObserver;
        llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
        ggml_backend_load_all_from_path(CASCADE_BIN);
        register_observed_device(*made);
        llama_backend_init();
        return made;
    }();
    return only;
}

std::string temporary_file() { return testing::TempDir() + "cache_watch_test_" + std::to_string(::getpid()); }

llama_model_ptr load_model(const Variant & variant, int layers = 0) {
    const auto & all = tiny_models();
    TinyModel model =
        *std::find_if(all.begin(), all.end(), [&](const TinyModel & one) { return one.name == variant.model; });
    model.layers = layers > 0 ? layers : model.layers;
    if (ggml_is_quantized(variant.cache)) { // this engine crashes on a shift of quantised keys of another head size
        model.heads = 2, model.kv_heads = 1, model.head_size = 64;
    }
    const std::string path = temporary_file() + ".gguf";
    write_tiny_model(model, path);
    llama_model_ptr loaded(llama_model_load_from_file(path.c_str(), llama_model_default_params()));
    std::remove(path.c_str());
    return loaded;
}

bool observe_every_node(ggml_tensor *, bool, void *) { return true; }

// A context whose caches are watched since its first graph.
class Watched {
  public:
    explicit Watched(const Variant & variant, int layers = 0) : batch(llama_batch_init(64, 0, 1)) {
        observer();
        model = load_model(variant, layers);
        llama_context_params params = llama_context_default_params();
        params.n_ctx = 256 * (variant.unified ? 1 : sequences);
        params.n_batch = params.n_ubatch = 64;
        params.n_seq_max = sequences;
        params.n_threads = params.n_threads_batch = 1;
        params.kv_unified = variant.unified;
        params.swa_full = false;
        params.flash_attn_type = variant.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
        params.type_k = variant.cache;
        params.type_v = variant.flash ? variant.cache : GGML_TYPE_F16;
        params.cb_eval = variant.observed ? observe_every_node : nullptr;
        context.reset(llama_init_from_model(model.get(), params));
        EXPECT_NE(context, nullptr);
        decode(0, 1);
        observer().check();
    }
    ~Watched() {
        observer().forget();
        llama_batch_free(batch);
    }
    Watched(const Watched &) = delete;
    Watched & operator=(const Watched &) = delete;

    void add(int sequence, int n) {
        const int start = llama_memory_seq_pos_max(memory(), sequence) + 1;
        for (int i = 0; i < n; i++) {
            const int at = batch.n_tokens++;
            batch.token[at] = static_cast<llama_token>(random() % 96);
            batch.pos[at] = start + i;
            batch.n_seq_id[at] = 1;
            batch.seq_id[at][0] = sequence;
            batch.logits[at] = 1;
        }
    }

    int decode_added() {
        const int status = llama_decode(context.get(), batch);
        decoded = status == 0 ? batch.n_tokens : 0;
        batch.n_tokens = 0;
        return status;
    }

    int decode(int sequence, int n) {
        add(sequence, n);
        return decode_added();
    }

    std::vector<uint8_t> save(int sequence, llama_state_seq_flags flags = 0) const {
        std::vector<uint8_t> state(llama_state_seq_get_size_ext(context.get(), sequence, flags));
        state.resize(llama_state_seq_get_data_ext(context.get(), state.data(), state.size(), sequence, flags));
        return state;
    }

    void restore(const std::vector<uint8_t> & state, int sequence, llama_state_seq_flags flags = 0) {
        llama_state_seq_set_data_ext(context.get(), state.data(), state.size(), sequence, flags);
    }

    std::vector<uint8_t> save_all() const {
        std::vector<uint8_t> state(llama_state_get_size(context.get()));
        state.resize(llama_state_get_data(context.get(), state.data(), state.size()));
        return state;
    }

    llama_memory_t memory() const { return llama_get_memory(context.get()); }

    llama_model_ptr model;
    llama_context_ptr context;
    std::mt19937 random{ 1 };
    int decoded = 0; // tokens of the latest batch

  private:
    llama_batch batch;
};

// All that changed was told.
CacheObserver::Totals expect_told(const std::string & what) {
    CacheObserver::Totals totals = observer().check();
    EXPECT_EQ(totals.unreported, 0) << what << ": " << totals.first_unreported << " and others of " << totals.changed;
    return totals;
}

// Cells changed, and no others were told.
void expect_exactly(int64_t cells, const std::string & what) {
    const auto totals = expect_told(what);
    EXPECT_EQ(totals.whole, 0) << what;
    EXPECT_EQ(totals.changed, cells * totals.caches) << what;
    EXPECT_EQ(totals.reported, cells * totals.caches) << what;
}

// A sliding window's cells outside of the window are in no state, so their number depends on the model.
void expect_exactly_what_changed(const std::string & what) {
    const auto totals = expect_told(what);
    EXPECT_EQ(totals.whole, 0) << what;
    EXPECT_GE(totals.changed, 8 * totals.caches) << what;
    EXPECT_EQ(totals.reported, totals.changed) << what;
}

class CacheWays : public testing::TestWithParam<Variant> {};

TEST_P(CacheWays, DecodingTellsTheCellsItWrites) {
    Watched run(GetParam());
    EXPECT_EQ(run.decode(0, 7), 0);
    expect_exactly(7, "a batch");
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(run.decode(0, 1), 0);
        expect_exactly(1, "a token");
    }
    run.add(0, 2);
    run.add(1, 5);
    run.add(2, 1);
    EXPECT_EQ(run.decode_added(), 0);
    expect_exactly(8, "several sequences");
}

TEST_P(CacheWays, CellsAreReused) {
    Watched run(GetParam());
    run.decode(0, 20);
    expect_told("prompt");
    llama_memory_seq_rm(run.memory(), 0, 15, -1);
    EXPECT_EQ(observer().check().changed, 0) << "removing touches no memory";
    EXPECT_EQ(run.decode(0, 4), 0);
    expect_exactly(4, "reuse");
}

TEST_P(CacheWays, CopiedSequences) {
    Watched run(GetParam());
    run.decode(0, 20);
    expect_told("prompt");
    llama_memory_seq_cp(run.memory(), 0, 1, -1, -1);
    EXPECT_EQ(observer().check().changed, 0) << "streams are copied before the next graph";
    EXPECT_EQ(run.decode(1, 1), 0);
    const auto totals = expect_told("a copy");
    EXPECT_EQ(totals.changed, (GetParam().unified ? 1 : 22) * totals.caches);
}

TEST_P(CacheWays, Shifts) {
    Watched run(GetParam());
    run.decode(0, 30);
    expect_told("prompt");
    llama_memory_seq_rm(run.memory(), 0, 5, 15);
    llama_memory_seq_add(run.memory(), 0, 15, -1, -10);
    EXPECT_EQ(run.decode(0, 1), 0);
    auto totals = expect_told("context shift");
    EXPECT_GT(totals.changed, totals.caches);
    EXPECT_GT(totals.whole, 0);
    llama_memory_seq_div(run.memory(), 0, 0, -1, 2);
    EXPECT_EQ(run.decode(0, 1), 0);
    totals = expect_told("division");
    EXPECT_GT(totals.changed, totals.caches);
}

TEST_P(CacheWays, Clearing) {
    Watched run(GetParam());
    run.decode(0, 10);
    expect_told("prompt");
    llama_memory_clear(run.memory(), false);
    EXPECT_EQ(observer().check().changed, 0);
    llama_memory_clear(run.memory(), true);
    const auto totals = expect_told("clear");
    EXPECT_EQ(totals.changed, 11 * totals.caches);
    EXPECT_EQ(totals.whole, totals.caches);
}

TEST_P(CacheWays, RestoredSequence) {
    Watched run(GetParam());
    run.decode(0, 12);
    run.decode(1, 9);
    expect_told("prompts");
    const std::vector<uint8_t> state = run.save(0);
    EXPECT_EQ(observer().check().changed, 0) << "saving";
    run.restore(state, 2);
    expect_exactly_what_changed("restored elsewhere");
    llama_memory_seq_rm(run.memory(), 0, -1, -1);
    run.decode(1, 20);
    expect_told("between");
    run.restore(state, 0);
    expect_told("restored in place");
    const std::vector<uint8_t> part = run.save(1, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
    run.decode(1, 20);
    expect_told("between");
    run.restore(part, 1, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
    expect_told("a part restored");
}

TEST_P(CacheWays, RestoredOnDevice) {
    Watched run(GetParam());
    run.decode(0, 12);
    const std::vector<uint8_t> state = run.save(0, LLAMA_STATE_SEQ_FLAGS_ON_DEVICE);
    llama_memory_seq_rm(run.memory(), 0, -1, -1);
    run.decode(0, 13);
    expect_told("between");
    run.restore(state, 0, LLAMA_STATE_SEQ_FLAGS_ON_DEVICE);
    EXPECT_GT(expect_told("device state").changed, 0);
}

TEST_P(CacheWays, RestoredContext) {
    Watched run(GetParam());
    run.decode(0, 12);
    const std::vector<uint8_t> state = run.save_all();
    run.decode(0, 20);
    run.decode(1, 20);
    expect_told("between");
    EXPECT_EQ(llama_state_set_data(run.context.get(), state.data(), state.size()), state.size());
    EXPECT_GT(expect_told("whole state").changed, 0);
}

// llama-server's slots use these.
TEST_P(CacheWays, StateFiles) {
    Watched run(GetParam());
    const std::string path = temporary_file() + ".state";
    run.decode(0, 12);
    ASSERT_GT(llama_state_seq_save_file(run.context.get(), path.c_str(), 0, nullptr, 0), 0U);
    llama_memory_seq_rm(run.memory(), 0, -1, -1);
    run.decode(0, 13);
    expect_told("between");
    size_t tokens = 0;
    llama_token unused = 0;
    EXPECT_GT(llama_state_seq_load_file(run.context.get(), path.c_str(), 1, &unused, 1, &tokens), 0U);
    expect_exactly_what_changed("file of a sequence");
    ASSERT_TRUE(llama_state_save_file(run.context.get(), path.c_str(), nullptr, 0));
    run.decode(0, 5);
    expect_told("between");
    EXPECT_TRUE(llama_state_load_file(run.context.get(), path.c_str(), &unused, 1, &tokens));
    EXPECT_GT(expect_told("file of a context").changed, 0);
    std::remove(path.c_str());
}

TEST_P(CacheWays, StoppedGraphs) {
    Watched run(GetParam());
    for (const int nodes : { 0, 5, 40 }) {
        struct Stop {
            int left;
        } stop = { nodes };
        llama_set_abort_callback(
            run.context.get(), [](void * left) { return static_cast<Stop *>(left)->left-- <= 0; }, &stop);
        EXPECT_NE(run.decode(0, 6), 0);
        const auto totals = expect_told("stopped after " + std::to_string(nodes));
        if (!GetParam().observed) { // parts that never come write nothing
            EXPECT_EQ(totals.reported, 6 * totals.caches);
        }
        llama_set_abort_callback(run.context.get(), nullptr, nullptr);
        EXPECT_EQ(run.decode(0, 6), 0);
        expect_told("afterwards");
    }
}

std::vector<Variant> variants() {
    return {
        {},
        { .unified = false },
        { .flash = false },
        { .flash = false, .unified = false },
        { .cache = GGML_TYPE_Q8_0 },
        { .unified = false, .cache = GGML_TYPE_Q8_0 },
        { .observed = true },
        { .model = "gemma2" },
        { .model = "gemma2", .flash = false, .unified = false },
    };
}

std::string variant_name(const testing::TestParamInfo<Variant> & info) {
    std::string name = info.param.name();
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(All, CacheWays, testing::ValuesIn(variants()), variant_name);

class CacheHistories : public testing::TestWithParam<Variant> {};

// One random thing that a program may do with a context.
class History {
  public:
    explicit History(const Variant & used) : run(used) {}

    std::string step() {
        switch (draw(12)) {
        case 0:
            llama_memory_seq_rm(run.memory(), sequence(), draw(40), draw(2) == 0 ? -1 : 40 + draw(40));
            return "seq_rm";
        case 1:
            return copy();
        case 2:
            return shift();
        case 3:
            llama_memory_clear(run.memory(), draw(2) == 0);
            return "clear";
        case 4:
            saved = run.save(sequence());
            return "save";
        case 5:
            if (!saved.empty()) {
                run.restore(saved, sequence());
            }
            return "restore";
        case 6:
            whole = run.save_all();
            return "save all";
        case 7:
            if (!whole.empty()) {
                llama_state_set_data(run.context.get(), whole.data(), whole.size());
            }
            return "restore all";
        default:
            return decode();
        }
    }

    int decoded() const { return run.decoded; }

  private:
    int draw(int n) { return static_cast<int>(run.random() % static_cast<unsigned>(n)); }
    int sequence() { return draw(sequences); }

    std::string decode() {
        for (int s = 0; s < sequences; s++) {
            if (draw(2) == 0) {
                run.add(s, 1 + draw(15));
            }
        }
        const bool waited = copies_wait;
        const int status = run.decode_added();
        if (status > 0) { // no room
            llama_memory_seq_rm(run.memory(), sequence(), -1, -1);
        }
        copies_wait = copies_wait && status != 0;
        return waited ? "copies and shifts" : "decode";
    }

    std::string copy() {
        const int from = sequence();
        const int to = (from + 1 + draw(sequences - 1)) % sequences;
        llama_memory_seq_rm(run.memory(), to, -1, -1);
        llama_memory_seq_cp(run.memory(), from, to, -1, -1);
        copies_wait = true;
        return "seq_cp";
    }

    std::string shift() {
        const int s = sequence();
        const int from = draw(20);
        const int by = 1 + draw(5);
        llama_memory_seq_rm(run.memory(), s, from, from + by);
        llama_memory_seq_add(run.memory(), s, from + by, -1, -by);
        copies_wait = true;
        return "shift";
    }

    Watched run;
    bool copies_wait = false; // for the next graph, and shifts
    std::vector<uint8_t> saved;
    std::vector<uint8_t> whole;
};

TEST_P(CacheHistories, NothingChangesUntold) {
    History history(GetParam());
    int64_t changed = 0;
    std::string told;
    for (int step = 0; step < 150; step++) {
        const std::string what = history.step();
        told.append(", ").append(what);
        const auto totals = expect_told(told);
        changed += totals.changed;
        if (what == "decode") {
            EXPECT_EQ(totals.whole, 0) << told;
            EXPECT_EQ(totals.reported, history.decoded() * totals.caches) << told;
        }
        if (testing::Test::HasFailure()) {
            return;
        }
    }
    EXPECT_GT(changed, 1000);
}

INSTANTIATE_TEST_SUITE_P(All, CacheHistories, testing::ValuesIn(variants()), variant_name);

TEST(CacheWatchContexts, EachContextHasItsOwn) {
    Watched first({});
    Watched second({ .flash = false });
    first.decode(0, 5);
    auto totals = expect_told("the first");
    EXPECT_EQ(totals.caches, 12);
    EXPECT_EQ(totals.reported, 5 * 6);
    second.decode(0, 3);
    totals = expect_told("the second");
    EXPECT_EQ(totals.reported, 3 * 6);
}

TEST(CacheWatchFaults, AGraphThatCannotBeReadMayWriteAnything) {
    Watched run({});
    run.decode(0, 3);
    expect_told("before");
    observed_settings().fault = Fault::read;
    EXPECT_EQ(run.decode(0, 5), 0);
    observed_settings().fault = Fault::none;
    const auto totals = expect_told("unread");
    EXPECT_EQ(totals.whole, totals.caches);
    EXPECT_EQ(run.decode(0, 5), 0);
    expect_exactly(5, "read");
}

} // namespace
} // namespace cascade::test
