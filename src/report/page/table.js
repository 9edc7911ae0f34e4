// Tables of figures with their intervals, and the tiles on top. A column is { field, title, how: its format }.
function figureRow(heading, summary, columns, className = '') {
    const cells = columns.map(({ field, title, how }) => {
        const interval = formattedInterval(intervalOf(summary, field), how);
        return element('td', { dataset: { title } }, element('span', {}, formatted(summary[field], how),
            interval ? element('small', { textContent: interval }) : null));
    });
    return element('tr', { className }, heading, ...cells);
}

function lineHeading(line, note) {
    return element('th', { scope: 'row' }, swatch(line), line.name, note ? element('small', { textContent: note }) : null);
}

function tableOf(first, titles, body) {
    const heading = (title) => element('th', { scope: 'col', textContent: title });
    return element('table', {}, element('thead', {}, element('tr', {}, ...[first, ...titles].map(heading))), body);
}

// It scrolls by itself where it is wider than the page, so the keyboard must reach it.
function tablePlace(figure, name) {
    const place = element('div', { className: 'table', tabIndex: 0, role: 'region', ariaLabel: name });
    figure.append(place);
    return place;
}

function tile(value, label, details) {
    return element('div', { className: 'tile' }, element('b', { textContent: value }),
        element('span', { textContent: label }),
        ...details.filter(Boolean).map((detail) => element('small', { textContent: detail })));
}
