// Light and dark. Every colour is a variable of the style sheet; plots, which need plain values, ask for them here.
const root = document.documentElement;
const probe = element('span', { hidden: true });
document.body.append(probe);

function colour(variable) {
    probe.style.color = `var(${variable})`;
    return getComputedStyle(probe).color;
}

const methodVariable = (method) => (METHODS.has(method) ? `--${method}` : '--other');
const methodColour = (method) => colour(methodVariable(method));

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : systemIsDark.matches);

function setUpTheme(redraw) {
    const button = document.getElementById('theme');
    const changed = () => {
        button.textContent = isDark() ? 'Light' : 'Dark';
        button.ariaLabel = `Switch to ${isDark() ? 'light' : 'dark'} colours`;
        redraw();
    };
    button.addEventListener('click', () => {
        root.dataset.theme = isDark() ? 'light' : 'dark';
        changed();
    });
    systemIsDark.addEventListener('change', changed);

    let onScreen;
    addEventListener('beforeprint', () => {
        onScreen = root.dataset.theme;
        root.dataset.theme = 'light';
        changed();
    });
    addEventListener('afterprint', () => {
        delete root.dataset.theme;
        Object.assign(root.dataset, onScreen ? { theme: onScreen } : {});
        changed();
    });
    changed();
}
