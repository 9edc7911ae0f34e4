// Right answers of every method: by task and length, and by the depth of what was asked for.
function shareCell(value, away) {
    const share = number(value);
    return element('td', { className: away ? 'away' : '', textContent: share === null ? '–' : `${Math.round(100 * share)} %`,
        style: share === null || away ? {} : { '--share': share } });
}

function shareHeading(column) {
    const made = element('th', { scope: 'col', className: column.away ? 'away' : '', textContent: column.title });
    column.more.filter(Boolean).forEach((words) => made.append(element('small', { textContent: words })));
    return made;
}

// columns: { title, more: small words below it, away: out of reach, dense, methods: share by name }
function drawShares(figure, place, columns) {
    figure.hidden = !columns.length || !methods.length;
    const row = (heading, of, className = '') =>
        element('tr', { className }, heading, ...columns.map((column) => shareCell(of(column), column.away)));
    const total = (method) => number(method.retrieval) ?? -1;
    const ranked = [...methods].sort((a, b) => total(b) - total(a));
    const body = element('tbody', {},
        row(element('th', { scope: 'row', textContent: 'dense model' }), (column) => column.dense, 'dense'),
        ...ranked.map((method) => row(lineHeading(familyLine(method, [], { name: text(method.name) })),
            (column) => column.methods?.[method.name])));
    const head = element('thead', {}, element('tr', {}, element('th', { scope: 'col', textContent: 'Method' }),
        ...columns.map(shareHeading)));
    place.replaceChildren(element('table', { className: 'shares' }, head, body));
}

const objects = (value) => list(value).filter((each) => each && typeof each === 'object');

function setUpRetrieval() {
    const places = ['tasks', 'depths'].map((id) => {
        const figure = document.getElementById(id);
        return [figure, tablePlace(figure, figure.querySelector('h3').textContent)];
    });
    const questions = (each) => counted(each.questions, 'questions');
    const tasks = objects(data.retrieval?.tasks).map((task) => ({ ...task, title: text(task.task), away: task.out_of_reach === true,
        more: [counted(task.length, 'tokens'), questions(task), task.out_of_reach === true ? 'out of reach' : ''] }));
    const depths = objects(data.retrieval?.by_depth).filter((range) => number(range.from) !== null && number(range.to) !== null)
        .map((range) => ({ ...range, away: false, title: `${Math.round(100 * range.from)}–${Math.round(100 * range.to)} %`,
            more: [questions(range)] }));
    return () => {
        drawShares(...places[0], tasks);
        drawShares(...places[1], depths);
    };
}
