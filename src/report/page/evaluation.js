// Puts the page of an evaluation together.
const caches = [text(data.cache_k), text(data.cache_v)].filter(Boolean);
showHeader('reading less of the past', [
    text(data.architecture), text(data.weights), data.text ? `text ${text(data.text)}` : '', counted(data.tokens, 'tokens'),
    counted(number(data.windows_done) ?? data.windows, 'windows'), counted(data.window, 'recent tokens exact'),
    counted(data.chunk, 'queries at a time'), caches.length ? `cache ${[...new Set(caches)].join(' and ')}` : '',
    text(data.machine), text(data.isa), text(data.date),
], 'cascade eval');
document.getElementById('command').textContent = text(data.command);

if (data.leaderboard === true) {
    root.dataset.leaderboard = 'yes';
    document.querySelector('#standing h2').after(document.getElementById('leaderboard'));
}
drawers.push(() => { document.getElementById('nothing').hidden = methods.length > 0; },
    setUpRanking(), setUpLeaderboard(), setUpDistribution(), setUpLayerErrors(), setUpRetrieval());
setUpPickers([{ label: 'Compared by', name: (by) => `share of ${BY.get(by)}`, selected: choice.by,
    values: [...BY.keys()].filter((by) => rivals.some((method) => number(method[by]) !== null)),
    onPick: (by) => { choice.by = by; } }]);
start();
