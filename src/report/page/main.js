// Puts the page together. The root element says when it is drawn, for scripts/check-page.
const drawers = [];
const redraw = () => {
    document.getElementById('nothing').hidden = chosen().length > 0;
    const sections = [...document.querySelectorAll('main section')];
    sections.forEach((section) => { section.hidden = false; }); // a plot can't be drawn inside a hidden one
    drawers.forEach((draw) => draw());
    sections.forEach((section) => { section.hidden = !section.querySelector('figure:not([hidden])'); });
};

function showFacts() {
    const model = text(analysis.model) || 'unnamed model';
    document.title = `${model}: token redundancy by layer`;
    document.getElementById('model').textContent = model;
    const layers = number(analysis.n_layer);
    const windows = number(analysis.windows_done) ?? number(analysis.windows);
    const facts = [
        text(analysis.architecture), layers === null ? '' : `${layers} layers`,
        analysis.text ? `text ${text(analysis.text)}` : '', windows === null ? '' : `${windows} windows`,
        analysis.sign ? `${text(analysis.sign)} similarity` : '', text(analysis.date),
    ];
    document.getElementById('facts').replaceChildren(
        ...facts.filter(Boolean).map((fact) => element('span', { textContent: fact })));
    document.getElementById('footer').textContent =
        `Written by cascade analyze${analysis.cascade ? ', cascade ' + text(analysis.cascade) : ''}. ` +
        'Plots by Apache ECharts. This file fetches nothing from a network.';
}

function showInterruption() {
    if (analysis.complete === false) {
        const note = document.getElementById('interrupted');
        const [done, all] = [formatted(analysis.windows_done, String), formatted(analysis.windows, String)];
        note.textContent = `This run was interrupted: ${done} of ${all} windows are in. Intervals are wider than planned.`;
        note.hidden = false;
    }
}

showFacts();
showInterruption();
drawers.push(setUpSummary(), setUpLayerPlots(), setUpTrends(), setUpSimilarity(), setUpText());
setUpPickers(redraw);
setUpTheme(redraw);
root.dataset.ready = 'yes';
