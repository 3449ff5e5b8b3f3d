// Renders the formulas of the book and refreshes everything under site_extra/vendor.
//
//   node mathrender.mjs formulas.json   the formulas that a collecting build listed (`make math`)
//   node mathrender.mjs                 those of the store, again (`make vendor`)
//
// Writes math_store.json beside this file, and in ../site_extra/vendor: math/math.css,
// math/fonts, the text fonts, and VERSIONS.json with a hash of every file.  Nothing here
// depends on the time or the machine: the same formulas give the same bytes.
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const modules = path.join(here, "node_modules");
const vendor = path.join(here, "..", "site_extra", "vendor");
const storeFile = path.join(here, "math_store.json");
const require = createRequire(import.meta.url);
const MathJax = require("mathjax");
const subsetFont = require("subset-font");

// The vocabulary of the course.  A chapter defines the same four for JupyterLab.
const MACROS = ["query", "key", "value", "state"];

// Characters that every font keeps if it has them, beside those of the formulas, so that a
// new formula rarely changes one.
const range = (a, b) => Array.from({ length: b - a + 1 }, (_, i) => a + i);
const BASE = [...range(0x20, 0x7e), 0xa0, ...range(0x1d434, 0x1d467), 0x210e]; // ASCII, italic Latin
const RARE = /-(?:b|bi|i|mi|os|ob|s|sb|ss|ssb|ssbi|ssi|dsi|cb|f|fb|m|u|ud)$/; // only if a formula needs it
const WHOLE = /zero|brk/; // fonts of empty boxes, which measure and break lines

await MathJax.init({
  loader: {
    load: [
      "input/tex-base",
      "[tex]/ams",
      "[tex]/boldsymbol",
      "[tex]/html",
      "[tex]/configmacros",
      "output/chtml",
      "a11y/assistive-mml",
    ],
    paths: {
      mathjax: `${modules}/mathjax`,
      "mathjax-stix2": `${modules}/@mathjax/mathjax-stix2-font`,
    },
  },
  tex: {
    packages: { "[+]": ["ams", "boldsymbol", "html", "configmacros"] },
    macros: Object.fromEntries(MACROS.map((n) => [n, [`\\class{${n}}{#1}`, 1]])),
    formatError: (_, error) => {
      throw error;
    },
  },
  output: {
    font: "mathjax-stix2",
    fontURL: "fonts",
    linebreaks: { inline: true },
    displayAlign: "left",
    displayIndent: "0",
  },
});
const adaptor = MathJax.startup.adaptor;

// ---- the formulas ------------------------------------------------------------

const key = (tex, display) =>
  crypto
    .createHash("sha256")
    .update(`${display ? "display" : "inline"}\n${tex}`)
    .digest("hex")
    .slice(0, 16);

const lean = (h) =>
  h
    .replace(/ data-[\w-]+="[^"]*"/g, "")
    .replace(
      / (?:overflow="overflow"|unselectable="on"|jax="CHTML"|class="MathJax"|justify="left"|texclass="\w+")/g,
      "",
    )
    .replace(/ style="position: relative;"/g, "")
    .replace(/ xmlns="[^"]*"/g, "")
    .replace(/: /g, ":")
    .replace(/;"/g, '"');

// Displays that may be wider than a phone get a tab stop, so that the keyboard can scroll them.
const wide = (h) => {
  const rows = (h.match(/<mjx-mtr/g) || []).length || 1;
  return (h.match(/<mjx-c /g) || []).length / rows > 24;
};

function listed() {
  if (process.argv[2]) return JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
  if (!fs.existsSync(storeFile)) return [];
  return Object.values(JSON.parse(fs.readFileSync(storeFile, "utf8")).formulas).map(
    (f) => [f.tex, f.display, "the store"],
  );
}

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const formulas = listed().sort((a, b) => byText(a[0], b[0]) || a[1] - b[1]);
const entries = {};
const used = new Set();
const failed = [];
for (const [tex, display, page] of formulas) {
  try {
    const node = await MathJax.tex2chtmlPromise(tex, { display });
    const h = lean(adaptor.outerHTML(node));
    for (const [, c] of h.matchAll(/<mjx-c[^>]*>([^<]*)</g))
      for (const ch of c) used.add(ch.codePointAt(0));
    entries[key(tex, display)] = {
      tex,
      display,
      ...(display && wide(h) && { wide: true }),
      html: h,
    };
  } catch (error) {
    failed.push(`  ${page}: ${tex}\n    ${error.message}`);
  }
}
if (failed.length) {
  console.error(`formulas that MathJax cannot set:\n${failed.join("\n")}`);
  process.exit(1);
}
const lines = Object.keys(entries)
  .sort()
  .map((k) => `${JSON.stringify(k)}: ${JSON.stringify(entries[k])}`);
const renderer = `mathjax ${require("mathjax/package.json").version}, stix2`;
fs.writeFileSync(
  storeFile,
  `{"renderer": "${renderer}",\n"formulas": {\n${lines.join(",\n")}\n}}\n`,
);

// ---- style sheet and fonts ---------------------------------------------------

let css = adaptor
  .cssText(MathJax.chtmlStylesheet())
  .replace(/\/\*[\s\S]*?\*\//g, "")
  .replaceAll('mjx-container[jax="CHTML"]', "mjx-container")
  .replace(/\s+/g, " ")
  .replace(/ ?([{};,]) ?/g, "$1")
  .replace(/: /g, ":")
  .replace(/;}/g, "}")
  .replace(/}/g, "}\n")
  .replace(/}\n}/g, "}}")
  .split("\n")
  .filter((l) => l && !/mjx-selected|mjx-merror|prefers-color-scheme/.test(l))
  .join("\n");
// leave out the fonts of styles that no formula uses
const classes = new Set(
  Object.values(entries).flatMap((f) => f.html.match(/STX-[A-Z0-9]+/g) || []),
);
css = css
  .split("\n")
  .filter((line) => {
    const [, family] = /MJX-(STX-[A-Z0-9]+)(?=[;}])/.exec(line) || [];
    return !family || classes.has(family) || !RARE.test(family.toLowerCase());
  })
  .join("\n");
css =
  "/* Written by book/_ext/mathrender.mjs from MathJax (Apache-2.0); do not edit. */\n" +
  `${css.trim()}\nmjx-container{position:relative}\nmjx-container[display]{text-align:left;margin:0;padding:.15em 0}\n`;

const files = {}; // path under vendor -> package
const put = (to, bytes, pkg) => {
  const target = path.join(vendor, to);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(target, bytes);
  files[to] = pkg;
};
for (const d of ["math", "stix-two-text"])
  fs.rmSync(path.join(vendor, d), { recursive: true, force: true });

put("math/math.css", css, "mathjax");
put("math/LICENSE", fs.readFileSync(`${modules}/mathjax/LICENSE`), "mathjax");
const keep = String.fromCodePoint(...new Set([...BASE, ...used]));
for (const [, name] of css.matchAll(/url\("?fonts\/([\w-]+)\.woff2/g)) {
  const bytes = fs.readFileSync(
    `${modules}/@mathjax/mathjax-stix2-font/chtml/woff2/${name}.woff2`,
  );
  // without a space of its own a font's line box is empty and MathJax clips every glyph
  const small = WHOLE.test(name)
    ? bytes
    : await subsetFont(bytes, keep, { targetFormat: "woff2" });
  put(`math/fonts/${name}.woff2`, small, "@mathjax/mathjax-stix2-font");
}

// The text: the letters of Western Europe, and the italic in one weight, for the book has no
// other. No page asks for small capitals or old figures.
const FEATURES = [
  "calt",
  "ccmp",
  "clig",
  "kern",
  "liga",
  "locl",
  "mark",
  "mkmk",
  "tnum",
];
const LATIN = [
  ...range(0x20, 0x7e),
  ...range(0xa0, 0xff),
  ...range(0x100, 0x17f),
  0x2c6,
  0x2da,
  0x2dc,
  ...range(0x2010, 0x2015),
  ...range(0x2018, 0x201e),
  ...range(0x2020, 0x2022),
  0x2026,
  0x202f,
  0x2030,
  0x2032,
  0x2033,
  0x2039,
  0x203a,
  0x2044,
  0x20ac,
  0x2122,
  ...range(0x2190, 0x2193),
  0x2212,
];
const text = `${modules}/@fontsource-variable/stix-two-text`;
for (const name of ["latin-wght-normal", "latin-wght-italic", "greek-wght-normal"]) {
  const bytes = fs.readFileSync(`${text}/files/stix-two-text-${name}.woff2`);
  const small = await subsetFont(
    bytes,
    String.fromCodePoint(...LATIN, ...range(0x370, 0x3ff)),
    {
      targetFormat: "woff2",
      keepFeatures: FEATURES,
      ...(/italic/.test(name) && { variationAxes: { wght: 400 } }),
    },
  );
  put(`stix-two-text/${name}.woff2`, small, "@fontsource-variable/stix-two-text");
}
put(
  "stix-two-text/LICENSE",
  fs.readFileSync(`${text}/LICENSE`),
  "@fontsource-variable/stix-two-text",
);

// ---- what was vendored -------------------------------------------------------

const packages = {};
for (const name of [...new Set(Object.values(files))].sort()) {
  const { version, license } = JSON.parse(
    fs.readFileSync(`${modules}/${name}/package.json`, "utf8"),
  );
  const own = Object.keys(files)
    .filter((f) => files[f] === name)
    .sort();
  packages[name] = {
    version,
    license,
    files: Object.fromEntries(
      own.map((f) => [
        f,
        crypto
          .createHash("sha256")
          .update(fs.readFileSync(path.join(vendor, f)))
          .digest("hex"),
      ]),
    ),
  };
}
fs.writeFileSync(
  path.join(vendor, "VERSIONS.json"),
  `${JSON.stringify(packages, null, 2)}\n`,
);

const kB = (n) => `${(n / 1000).toFixed(1)} kB`;
const size = (f) => fs.statSync(path.join(vendor, f)).size;
const fontFiles = Object.keys(files).filter((f) => f.startsWith("math/fonts/"));
console.log(
  `${formulas.length} formulas, store ${kB(fs.statSync(storeFile).size)}, math.css ${kB(css.length)}, ` +
    `${fontFiles.length} maths fonts ${kB(fontFiles.reduce((n, f) => n + size(f), 0))}`,
);
process.exit(0);
