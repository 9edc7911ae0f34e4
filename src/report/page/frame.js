// What every page has: a header, a footer, and plots that are drawn again when something is chosen. The root element says
// when all is drawn, for scripts/check-page.
const drawers = [];
const redraw = () => {
    const sections = [...document.querySelectorAll('main section')];
    sections.forEach((section) => { section.hidden = false; }); // a plot can't be drawn inside a hidden one
    drawers.forEach((draw) => draw());
    sections.forEach((section) => { section.hidden = !section.querySelector('figure:not([hidden])'); });
};

// fields: [{ label, values, selected, name: of a value, onPick }]
function setUpPickers(fields) {
    const form = document.getElementById('pickers');
    for (const { label, values, selected, name, onPick } of fields.filter((field) => field.values.length)) {
        form.append(picker(label, values, selected, name, (value) => {
            onPick(value);
            redraw();
        }));
    }
    form.hidden = !form.children.length;
    form.addEventListener('submit', (event) => event.preventDefault());
}

function showHeader(subject, facts, program) {
    const model = text(data.model) || 'unnamed model';
    document.title = `${model}: ${subject}`;
    document.getElementById('model').textContent = model;
    document.getElementById('facts').replaceChildren(
        ...facts.filter(Boolean).map((fact) => element('span', { textContent: fact })));
    document.getElementById('footer').textContent =
        `Written by ${program}${data.cascade ? ', cascade ' + text(data.cascade) : ''}. ` +
        'Plots by Apache ECharts. This file fetches nothing from a network.';
    if (data.complete === false) {
        const note = document.getElementById('interrupted');
        const [done, all] = [formatted(data.windows_done, String), formatted(data.windows, String)];
        note.textContent = `This run was interrupted: ${done} of ${all} windows are in. Intervals are wider than planned.`;
        note.hidden = false;
    }
}

const counted = (value, words) => (number(value) === null ? '' : `${value} ${words}`);

function start() {
    setUpTheme(redraw);
    root.dataset.ready = 'yes';
}
