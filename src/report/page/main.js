// Puts the page of an analysis together.
const chooser = (field, label, name) => ({ label, name, values: distinct(field), selected: choice[field],
    onPick: (value) => { choice[field] = value; } });

showHeader('token redundancy by layer', [
    text(analysis.architecture), counted(analysis.n_layer, 'layers'), analysis.text ? `text ${text(analysis.text)}` : '',
    counted(number(analysis.windows_done) ?? analysis.windows, 'windows'),
    analysis.sign ? `${text(analysis.sign)} similarity` : '', text(analysis.date),
], 'cascade analyze');
drawers.push(() => { document.getElementById('nothing').hidden = chosen().length > 0; },
    setUpSummary(), setUpLayerPlots(), setUpTrends(), setUpSimilarity(), setUpText());
setUpPickers([chooser('tokens', 'Tokens T', text), chooser('source', 'Source', (value) => SOURCES.get(value) ?? text(value)),
    chooser('tau', 'Threshold τ', text)]);
start();
