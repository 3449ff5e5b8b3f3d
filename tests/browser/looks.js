/* What looks.py asks of a page, as seen from inside it: lists of what is not so. */
/* oxlint-disable no-unused-vars -- looks.py calls them by name */

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const start = (element) => element.outerHTML.slice(0, 120).replace(/\s+/g, " ");
const seen = (element) => element.checkVisibility({ visibilityProperty: true });

/* --- colours --- */

function luminance(color) {
  const [r, g, b] = color
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map((part) => {
      const v = part / 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const clear = (color) => color === "transparent" || color.endsWith(", 0)");

function ground(element) {
  const color = getComputedStyle(element).backgroundColor;
  return clear(color) && element.parentElement ? ground(element.parentElement) : color;
}

/* A colour of the style sheet, as it is computed here and now. */
function token(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name}, #0000)`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function pale() {
  const found = new Set();
  const quiet = ["--paper", "--mark", "--rule"].map(token);
  const drawn = "path, use, rect, circle, line, polyline, text";
  for (const element of all(`svg.plot :is(${drawn})`)) {
    if (element.closest("defs, clipPath")) continue;
    const style = getComputedStyle(element);
    const text = element.localName === "text";
    for (const paint of text ? ["fill"] : ["fill", "stroke"]) {
      const color = style[paint];
      const shade = style.opacity * style[`${paint}Opacity`] < 1;
      if (!color.startsWith("rgb")) continue;
      if (!text && (shade || quiet.includes(color))) continue;
      const ratio = contrast(color, ground(element.ownerSVGElement));
      if (ratio < (text ? 4.5 : 3))
        found.add(`${element.localName} ${paint} ${color}: ${ratio.toFixed(2)}`);
    }
  }
  for (const image of all("img").filter(seen)) {
    const card = getComputedStyle(image).backgroundColor;
    if (!clear(card) && contrast(card, ground(document.body)) > 3)
      found.add(`a card behind ${start(image)}`);
  }
  return [...found];
}

/* Mark a text of each look that is new, and a link of each look in each kind of sentence.
   A look is all that a comparison of colours depends on. */
function mark(known) {
  all("[data-asked]").forEach((element) => delete element.dataset.asked);
  const looks = new Set(known);
  const grounds = new Map([[null, ""]]);
  const under = (element) => {
    if (!grounds.has(element)) {
      const s = getComputedStyle(element);
      const own = [s.backgroundColor, s.backgroundImage, s.opacity, s.filter];
      const nothing = own.join() === "rgba(0, 0, 0, 0),none,1,none";
      const below = under(element.parentElement);
      grounds.set(element, nothing ? below : `${below} ${own}`);
    }
    return grounds.get(element);
  };
  const letters = (element) => {
    const s = getComputedStyle(element);
    const { color, fontSize, fontWeight, textDecorationLine, textShadow } = s;
    return [color, fontSize, fontWeight, textDecorationLine, textShadow, s.position];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !seen(element)) continue;
    const link = element.closest("a");
    const beside = link && letters(link.parentElement);
    const look = [under(element), letters(element), beside].join();
    if (looks.has(look)) continue;
    looks.add(look);
    element.dataset.asked = "";
    if (link) link.dataset.asked = "";
  }
  return [...looks].filter((look) => !known.includes(look));
}

async function barriers(rules, selector) {
  axe.configure({
    rules: [
      { id: "color-contrast", selector: selector || "*" },
      { id: "link-in-text-block", selector: `a[href]${selector}` },
    ],
  });
  const { violations } = await axe.run(document, {
    resultTypes: ["violations"],
    preload: false,
    runOnly: { type: "rule", values: rules },
  });
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, html }) => `${id}: ${target} ${html.slice(0, 120)}`),
  );
}

/* --- layout --- */

function tooWide() {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth === clientWidth) return [];
  const wide = all(".bd-article *").filter(
    (element) => element.getBoundingClientRect().right > clientWidth + 1,
  );
  return [`${scrollWidth} px: ${wide.length ? start(wide.at(-1)) : ""}`];
}

/* Tables of text that go far beyond the edge. Those of numbers scroll. */
function cutTables() {
  return all("table.table")
    .filter((table) => table.getBoundingClientRect().width > 1.05 * innerWidth)
    .map(start);
}

/* Every box of the page, and whether it is seen. */
function boxes() {
  return all("body *")
    .map((element) => {
      const { x, y, width, height } = element.getBoundingClientRect();
      return [x, y, width, height, seen(element)].join();
    })
    .join(" ");
}

function unprintable() {
  const found = [];
  const tell = (what, elements) =>
    elements
      .filter(seen)
      .forEach((element) => found.push(`${what}: ${start(element)}`));
  const edge = document.documentElement.clientWidth + 1;
  const furniture = "nav, button, dialog, [role=navigation], .scrub input";
  tell(
    "furniture",
    all(furniture).filter((element) => element.offsetHeight > 1),
  );
  tell(
    "cut off",
    all("pre, table, svg.plot, mjx-container, figure").filter(
      (element) => element.getBoundingClientRect().right > edge,
    ),
  );
  tell(
    "scrolls",
    all("pre, mjx-container, .cell_output, table").filter(
      (element) =>
        getComputedStyle(element).overflowX !== "visible" &&
        element.scrollWidth > element.clientWidth + 1,
    ),
  );
  for (const element of all("html, body, main, .bd-article")) {
    const { backgroundColor, color } = getComputedStyle(element);
    const white = clear(backgroundColor) || backgroundColor === "rgb(255, 255, 255)";
    if (!white) tell(`ground ${backgroundColor}`, [element]);
    if (contrast(color, "rgb(255, 255, 255)") < 10) tell(`ink ${color}`, [element]);
  }
  all(".scrub .frame")
    .filter((frame) => !seen(frame))
    .forEach((frame) => found.push(`left out: ${start(frame)}`));
  return [...found, ...tooWide()];
}

/* --- keyboard --- */

const ABLE = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';

function scrolls(element) {
  const { overflowX, overflowY } = getComputedStyle(element);
  return (
    (/auto|scroll/.test(overflowX) && element.scrollWidth > element.clientWidth + 1) ||
    (/auto|scroll/.test(overflowY) && element.scrollHeight > element.clientHeight + 1)
  );
}

function look(element) {
  const s = getComputedStyle(element);
  return [
    s.outline,
    s.boxShadow,
    s.backgroundColor,
    s.borderColor,
    s.textDecoration,
  ].join();
}

/* The focus goes where it is when nothing before the element was reached yet. */
function startBefore(element) {
  const place = document.createElement("a");
  place.href = "#";
  element.prepend(place);
  place.focus();
  place.remove();
}

/* Of a group of radio buttons, Tab reaches the chosen one. */
function watch(root) {
  startBefore(document.querySelector(root));
  const wanted = all(`${root} *`).filter(
    (element) =>
      seen(element) &&
      (element.matches(ABLE)
        ? !element.disabled && element.tabIndex >= 0
        : scrolls(element) && !element.querySelector(ABLE)) &&
      (element.type !== "radio" || element.checked),
  );
  const plain = new Map(wanted.map((element) => [element, look(element)]));
  const reached = [];
  document.addEventListener("focusin", ({ target }) =>
    reached.push([target, look(target)]),
  );
  window.walk = { wanted, plain, reached };
  return wanted.length;
}

/* What is left takes the focus as from the keyboard: a key was pressed before. */
function focusFrom(first) {
  window.walk.wanted.slice(first).forEach((e) => e.focus({ preventScroll: true }));
}

function walked() {
  const { wanted, plain, reached } = window.walk;
  const path = reached.map(([element]) => element).filter((e) => wanted.includes(e));
  const missed = wanted.filter((element) => !path.includes(element));
  const unseen = reached.filter(([element, now]) => plain.get(element) === now);
  const back = path.filter(
    (element, i) => i && wanted.indexOf(element) < wanted.indexOf(path[i - 1]),
  );
  const first = all("[tabindex]").filter((element) => element.tabIndex > 0);
  return [
    ...first.map((element) => `out of order: ${start(element)}`),
    ...missed.map((element) => `not reached: ${start(element)}`),
    ...unseen.map(([element]) => `focus is not seen: ${start(element)}`),
    ...back.map((element) => `out of order: ${start(element)}`),
  ];
}

/* --- figures --- */

function unsaid() {
  const found = [];
  const tell = (what, elements) =>
    elements.forEach((element) => found.push(`${what}: ${start(element)}`));
  const numbers = "table td, details li, a[href$='.json'], .read";
  const whole = (plot) => plot.closest(".frame") || plot.closest("figure");
  const named = (plot) => plot.role === "img" && (plot.ariaLabel || "").length >= 20;
  tell(
    "no name",
    all("svg.plot").filter((plot) => !named(plot)),
  );
  tell(
    "no numbers",
    all("svg.plot").filter((plot) => !whole(plot)?.querySelector(numbers)),
  );
  tell(
    "no caption",
    all("figure").filter((e) => !e.querySelector("figcaption")),
  );
  tell(
    "no name",
    all("img").filter((image) => !image.alt.trim()),
  );
  return found;
}

/* --- with and without a script --- */

/* What is read and what is drawn, outside of what only a script can do. */
function content() {
  const kept = (element) =>
    !element.closest(".quiz, .quiz-map, form, button, noscript");
  const texts = all(
    ".bd-article :is(h1, h2, h3, p, li, dt, dd, td, th, caption, " +
      "figcaption, summary, pre)",
  ).filter((element) => kept(element) && !element.querySelector("p, li"));
  const drawn = all(
    ".bd-article :is(svg, math, mjx-container, figure, table, img)",
  ).filter((element) => kept(element) && element.checkVisibility());
  return [
    ...texts.map((element) => element.textContent.trim()),
    ...drawn.map((element) => `<${element.localName}>`),
  ];
}
