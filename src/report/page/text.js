// The text with a layer's representatives marked.
const NEWLINE = '↵';

// Space before a word stays outside of its mark, so that neighbours can be told apart; a newline gets a sign to mark.
function tokenParts(piece, index) {
    const [, before, word] = /^(\s*)([^]*)$/.exec(piece);
    const parts = [];
    const mark = (content, className) => {
        const made = element('span', { className, textContent: content, title: `token ${index}` });
        parts.push(made);
        return made;
    };
    if (!word) {
        const newline = piece.includes('\n');
        return { marked: mark(newline ? NEWLINE : piece, newline ? 'token newline' : 'token'),
            parts: newline ? [...parts, piece] : parts };
    }
    const marked = mark(word, 'token');
    return { marked, parts: [before, ...parts] };
}

function textControls(onChange) {
    const layer = element('input', { type: 'range', min: 0, step: 1, value: 0, ariaLabel: 'Layer' });
    const method = element('select');
    const said = element('output');
    layer.addEventListener('input', onChange);
    method.addEventListener('change', onChange);
    const bar = element('div', { className: 'textbar' },
        element('label', {}, element('span', { textContent: 'Method' }), method),
        element('label', { className: 'grow' }, element('span', { textContent: 'Layer' }), layer), said);
    return { bar, layer, method, said };
}

function textLegend() {
    const entry = (className, words) => element('span', { className: 'entry' },
        element('span', { className: `token ${className}`, textContent: 'token' }), words);
    return element('div', { className: 'legend' }, entry('kept', 'representative'),
        entry('kept added', 'new in this layer'), entry('removed', 'no longer since this layer'));
}

function offerMethods(select, sets) {
    const before = select.value;
    select.replaceChildren(...sets.map((set) =>
        element('option', { value: text(set.method), textContent: text(set.method), selected: text(set.method) === before })));
}

function markTokens(marks, now, earlier) {
    marks.forEach((mark, i) => {
        mark.classList.toggle('kept', now.has(i));
        mark.classList.toggle('added', now.has(i) && earlier !== null && !earlier.has(i));
        mark.classList.toggle('removed', !now.has(i) && earlier !== null && earlier.has(i));
    });
}

function setUpText() {
    const figure = document.getElementById('text');
    const pieces = list(analysis.sample?.pieces).map(text);
    const tokens = pieces.map(tokenParts);
    const marks = tokens.map((token) => token.marked);
    const controls = textControls(show);
    const passage = element('div', { className: 'passage', tabIndex: 0, role: 'region', ariaLabel: 'The text' });
    passage.append(...tokens.flatMap((token) => token.parts));
    figure.append(controls.bar, passage, textLegend());
    let sets = [];

    function show() {
        const set = sets[Math.max(0, controls.method.selectedIndex)];
        const layers = list(set?.layers);
        controls.layer.max = Math.max(0, layers.length - 1);
        const layer = Number(controls.layer.value);
        const now = new Set(list(layers[layer]));
        const earlier = layer > 0 ? new Set(list(layers[layer - 1])) : null;
        const added = earlier && [...now].filter((i) => !earlier.has(i)).length;
        const removed = earlier && [...earlier].filter((i) => !now.has(i)).length;
        markTokens(marks, now, earlier);
        figure.style.setProperty('--mark', `var(${methodVariable(set?.method)})`);
        controls.said.textContent = `layer ${layer} of 0–${layers.length - 1}: ${now.size} of ${pieces.length} tokens` +
            (earlier ? `, ${added} new, ${removed} gone` : '');
    }

    return () => {
        sets = list(analysis.sample?.sets).filter((set) => matches(set, ['source', 'tau']))
            .sort((a, b) => rank(a.method) - rank(b.method));
        figure.hidden = !sets.length || !pieces.length;
        offerMethods(controls.method, sets);
        show();
    };
}
