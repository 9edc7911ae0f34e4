#include "support/cache_observer.h"

#include "backend/backend.h"
#include "backend/engine.h"
#include "backend/session.h"

#include <stdexcept>

namespace cascade::test {

namespace {

CacheObserver * observer_of_device = nullptr;

ggml_status compute_observed(ggml_backend_t backend, ggml_cgraph * graph) {
    backend::Session & session = backend::session_of(backend);
    observer_of_device->watch_caches(session.cache_watch(), graph::nodes_of(*graph));
    return session.compute(graph);
}

ggml_backend_t make_observed_backend(ggml_backend_dev_t, const char *) {
    const std::shared_ptr<const Settings> settings(&observed_settings(), [](const Settings *) {});
    ggml_backend_t backend = backend::make_backend(settings);
    backend::session_of(backend).cache_watch().listen(observer_of_device);
    backend->iface.graph_compute = compute_observed;
    return backend;
}

} // namespace

Settings & observed_settings() {
    static Settings settings;
    return settings;
}

void register_observed_device(CacheObserver & observer) {
    observer_of_device = &observer;
    static ggml_backend_device device = *backend::cpu_device();
    device.iface.get_name = [](ggml_backend_dev_t) { return "Observed"; };
    device.iface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; };
    device.iface.init_backend = make_observed_backend;
    ggml_backend_device_register(&device);
}

void CacheObserver::cells_change(const void * cache, std::span<const int64_t> cells) noexcept {
    caches.at(cache).cells.insert(cells.begin(), cells.end());
}

void CacheObserver::cache_changes(const void * cache) noexcept { caches.at(cache).whole = true; }

void CacheObserver::cache_goes(const void * cache) noexcept {
    caches.erase(cache);
    gone++;
}

void CacheObserver::watch_caches(backend::CacheWatch & watch, graph::Nodes nodes) {
    for (const graph::Layer & layer : graph::read_graph(nodes).layers) {
        for (const graph::AttentionSite & site : layer.attention) {
            if (site.uses_cache()) {
                watch_cache(watch, *site.key_cache, false);
                watch_cache(watch, *site.value_cache, site.form == graph::AttentionForm::softmax);
            }
        }
    }
}

void CacheObserver::watch_cache(backend::CacheWatch & watch, const ggml_tensor & root, bool transposed) {
    using backend::CellLayout;
    if (!watch.watch(root, transposed ? CellLayout::transposed : CellLayout::rows)) {
        throw std::runtime_error(std::string("not watched: ") + root.name);
    }
    Seen & seen = caches[root.data];
    if (seen.streams == 0) {
        seen = { root.name,
                 root.ne[0],
                 root.ne[1],
                 root.ne[2],
                 static_cast<int64_t>(root.nb[1]),
                 transposed,
                 std::string(static_cast<const char *>(root.data), ggml_nbytes(&root)),
                 {},
                 false };
    }
}

int64_t CacheObserver::Seen::cell_at(int64_t byte) const {
    if (!transposed) {
        return byte / row_bytes;
    }
    const int64_t value = byte / (row_bytes / width);
    const int64_t in_stream = value % (stream * width);
    return value / (stream * width) * stream + in_stream % stream;
}

CacheObserver::Totals CacheObserver::check() {
    Totals totals;
    for (auto & [memory, seen] : caches) {
        const auto * now = static_cast<const char *>(memory);
        std::set<int64_t> changed;
        for (size_t i = 0; i < seen.bytes.size(); i++) {
            if (now[i] != seen.bytes[i]) {
                changed.insert(seen.cell_at(static_cast<int64_t>(i)));
            }
        }
        for (const int64_t cell : changed) {
            if (!seen.whole && !seen.cells.contains(cell)) {
                totals.unreported++;
                if (totals.first_unreported.empty()) {
                    totals.first_unreported = seen.name + " cell " + std::to_string(cell);
                }
            }
        }
        totals.changed += static_cast<int64_t>(changed.size());
        totals.reported += static_cast<int64_t>(seen.cells.size());
        totals.whole += seen.whole ? 1 : 0;
        totals.caches++;
        seen.bytes.assign(now, seen.bytes.size());
        seen.cells.clear();
        seen.whole = false;
    }
    return totals;
}

} // namespace cascade::test
