// The main figures on top, and the table of all methods.
const FRONTIER = '◆';
const RANKING = [
    { field: 'kl', title: 'KL', how: format.kl },
    { field: 'share', title: 'Tokens read', how: format.percent },
    { field: 'bytes_share', title: 'Bytes read', how: format.percent },
    { field: 'on_frontier', title: 'Frontier', how: () => FRONTIER },
    { field: 'ahead', title: 'Surely ahead of', how: String },
    { field: 'kl_99', title: 'KL 99\u00a0%', how: format.kl },
    { field: 'top1', title: 'Top-1 kept', how: format.percent },
    { field: 'ppl_ratio', title: 'PPL ratio', how: (value) => fixed(value, 4) },
    { field: 'retrieval', title: 'Retrieval', how: format.percent },
    { field: 'cost', title: 'Time', how: format.factor },
];

function rankingRow(method, columns) {
    const row = { ...method, on_frontier: onFrontier(method) ? 1 : null,
        ahead: list(method.ahead_of).filter((name) => rivals.some((rival) => rival.name === name)).length };
    const line = familyLine(method, [], { name: text(method.name) });
    return figureRow(lineHeading(line, METHODS.get(ruleOf(method))?.note), row, columns);
}

function noiseRow(method, columns) {
    const heading = element('th', { scope: 'row', textContent: `${text(method.name)}: the engine's own other attention` });
    return figureRow(heading, method, columns, 'paper');
}

function drawRanking(figure, place) {
    figure.hidden = !methods.length;
    const columns = RANKING.filter(({ field }) => field === 'ahead' || methods.some((method) => number(method[field]) !== null) ||
        (field === 'on_frontier' && rivals.some(onFrontier)));
    const body = element('tbody', {}, ...methods.map((method) => (isNoise(method) ? noiseRow : rankingRow)(method, columns)));
    place.replaceChildren(tableOf('Method', columns.map(({ title }) => title), body));
}

function drawTiles(place) {
    const measured = rivals.filter((method) => number(method.kl) !== null && number(method.share) !== null);
    const tiles = [];
    const add = (value, how, label, details) => number(value) === null || tiles.push(tile(how(value), label, details));
    const dense = data.dense ?? {};
    const two = (value) => fixed(value, 2);
    add(dense.ppl, two, "the dense model's perplexity", [formattedInterval(intervalOf(dense, 'ppl'), two)]);
    add(data.tokens_scored, format.count, 'tokens scored', [counted(data.windows_done, 'windows'),
        number(data.tokens) === null ? '' : `of ${data.tokens} tokens each`]);
    add(data.noise?.kl, format.kl, "KL of the engine's own noise", ['less than this is as good as dense']);
    add(measured[0]?.kl, format.kl, `lowest KL: ${text(measured[0]?.name)}`,
        [number(measured[0]?.[choice.by]) === null ? '' : `${format.percent(measured[0][choice.by])} of ${BY.get(choice.by)}`]);
    place.replaceChildren(...tiles);
}

function setUpRanking() {
    const figure = document.getElementById('ranking');
    const place = tablePlace(figure, 'All methods');
    const tiles = document.getElementById('figures');
    return () => {
        drawTiles(tiles);
        drawRanking(figure, place);
    };
}
