// The main figures on top, and the table of all methods.
const COLUMNS = [
    { field: 'mean_r', title: 'Mean r', how: format.count },
    { field: 'mean_r_share', title: 'r\u00a0/\u00a0T', how: format.percent },
    { field: 'mean_turnover', title: 'Turnover', how: format.percent },
    { field: 'mean_jaccard', title: 'Jaccard, layer before', how: format.ratio },
    { field: 'mean_jaccard_independent', title: 'Jaccard, independent', how: format.ratio },
    { field: 'mean_growth', title: 'r over independent', how: format.factor },
    { field: 'gram_savings', title: 'Gram saved', how: format.percent },
    { field: 'mean_copy_error', title: 'Copy error', how: format.ratio },
    { field: 'multiply_adds', title: 'Multiply-adds (10⁹)', how: (value) => fixed(value / 1e9, 2) },
    { field: 'seconds', title: 'Time', how: format.seconds },
];

const methodHeading = (result) => lineHeading(methodLine(result.method, []), METHODS.get(result.method)?.note);

function drawTable(figure, place) {
    const of = chosen();
    const columns = COLUMNS.filter(({ field }) => of.some((result) => number(result.summary?.[field]) !== null));
    figure.hidden = !columns.length;
    const body = element('tbody');
    for (const result of of) {
        body.append(figureRow(methodHeading(result), result.summary ?? {}, columns));
        if (result.paper) {
            const heading = element('th', { scope: 'row', textContent: `${text(result.paper.model)}, in the paper` });
            body.append(figureRow(heading, result.paper, columns, 'paper'));
        }
    }
    place.replaceChildren(tableOf('Method', columns.map(({ title }) => title), body));
}

// One figure of one method, with its interval and the paper's figure.
function methodTile(result, field, how, label) {
    const summary = result?.summary ?? {};
    if (number(summary[field]) === null) {
        return [];
    }
    const details = [formattedInterval(intervalOf(summary, field), how),
        number(result.paper?.[field]) === null ? '' : `${text(result.paper.model)}: ${how(result.paper[field])}`];
    return [tile(how(summary[field]), label, details)];
}

function drawTiles(place) {
    const of = chosen();
    const independent = of.find((result) => result.method === 'threshold') ?? of[0];
    const inheriting = of.find((result) => INHERITING.includes(result.method));
    const timings = Array.isArray(analysis.timing) ? analysis.timing : [];
    const ratio = number(timings.find((timing) => timing?.tokens === choice.tokens)?.ratio);
    place.replaceChildren(
        ...methodTile(independent, 'mean_r', format.count, `of ${text(choice.tokens)} tokens represent all`),
        ...methodTile(independent, 'mean_jaccard', format.ratio, 'Jaccard to the layer before'),
        ...methodTile(inheriting, 'mean_turnover', format.percent, `turnover (${text(inheriting?.method)})`),
        ...methodTile(inheriting, 'gram_savings', format.percent, `Gram entries saved (${text(inheriting?.method)})`),
        ...(ratio === null ? [] : [tile(format.factor(ratio), "the bare engine's time", ['for the whole analysis'])]));
}

function setUpSummary() {
    const figure = document.getElementById('summary');
    const place = tablePlace(figure, 'Summary');
    const tiles = document.getElementById('figures');
    return () => {
        drawTiles(tiles);
        drawTable(figure, place);
    };
}
