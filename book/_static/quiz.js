/* The quiz of a chapter and the map of the opening page. What they ask and what is
   right stands in the page as JSON; nothing is fetched, and what was predicted right
   stays in this browser. */
(function () {
  "use strict";
  const KEY = "transformer-math-lab-quiz";

  function load() {
    try {
      return JSON.parse(localStorage.getItem(KEY)) || {};
    } catch {
      return {}; // no storage here, or not ours
    }
  }

  function save(scores) {
    try {
      localStorage.setItem(KEY, JSON.stringify(scores));
    } catch {} // no storage: the score is shown, and forgotten
  }

  function make(tag, parts, ...children) {
    const node = Object.assign(document.createElement(tag), parts);
    node.append(...children);
    return node;
  }

  const read = (place) => JSON.parse(place.querySelector("script").textContent);
  const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

  function quiz(place) {
    const { chapter, claims, faults } = read(place);
    const picks = make("ol", { className: "picks" });
    const score = make("output", { className: "score" });
    const why = make("div", { className: "why" });
    let chosen, rows;

    function choose(fault) {
      chosen = fault;
      score.value = "";
      why.replaceChildren();
      rows = fault.checks.map((id) => {
        const box = make("input", { type: "checkbox", value: id });
        const said = make("output", { ariaLive: "off" }); // the score is read out
        const claim = make("span", {}, make("span", { textContent: claims[id] }));
        return {
          id,
          box,
          said,
          item: make("li", {}, make("label", {}, box, claim), said),
        };
      });
      picks.replaceChildren(...rows.map((row) => row.item));
    }

    function run(event) {
      event.preventDefault();
      const tally = { caught: 0, missed: 0, "false alarm": 0 };
      for (const { id, box, said } of rows) {
        const broken = chosen.red.includes(id);
        const word = broken
          ? box.checked
            ? "caught"
            : "missed"
          : box.checked
            ? "false alarm"
            : "";
        const verdict = broken ? "broken" : "holds";
        said.replaceChildren(
          make("span", { className: verdict, textContent: verdict }),
          make("span", { textContent: word }),
        );
        if (word) tally[word] += 1;
      }
      const right = !tally.missed && !tally["false alarm"];
      score.value =
        `${tally.caught} caught, ${tally.missed} missed, ${count(tally["false alarm"], "false alarm")}.` +
        (right ? " That is exactly right." : "") +
        (chosen.more
          ? ` ${count(chosen.more, "more check")} of this chapter broke.`
          : "");
      why.replaceChildren(
        make("p", { textContent: chosen.story }),
        make("p", {
          textContent: `An obvious check that stays green: ${claims[chosen.green]}`,
        }),
      );
      const scores = load();
      const known = (scores[chapter] = scores[chapter] || {});
      known[chosen.id] = known[chosen.id] || right;
      save(scores);
    }

    const choices = faults.map((fault, i) => {
      const box = make("input", {
        type: "radio",
        name: `fault-${chapter}`,
        value: fault.id,
        checked: !i,
      });
      box.addEventListener("change", () => choose(fault));
      const name = make(
        "span",
        {},
        `${fault.title} `,
        make("code", { textContent: fault.operation }),
      );
      return make("label", {}, box, name);
    });
    const form = make(
      "form",
      { className: "predict quiz", noValidate: true },
      make("p", { className: "admonition-title", textContent: "Predict" }),
      make("fieldset", {}, make("legend", { textContent: "Pick a fault" }), ...choices),
      make(
        "fieldset",
        {},
        make("legend", { textContent: "Tick the checks you expect to fail" }),
        picks,
      ),
      make(
        "p",
        { className: "go" },
        make("button", { textContent: "Run the fault" }),
        score,
      ),
      why,
    );
    form.addEventListener("submit", run);
    choose(faults[0]);
    place.append(form);
  }

  function map(place) {
    const scores = load();
    const items = place.querySelectorAll("li");
    for (const [i, { chapter, faults }] of read(place).entries()) {
      const known = scores[chapter] || {};
      const right = faults.filter((id) => known[id]).length;
      const dots = make("span", { className: "dots", ariaHidden: "true" });
      for (const id of faults) {
        const state = known[id] ? "right" : id in known ? "tried" : "open";
        dots.append(make("i", { className: state }));
      }
      const words = `${right} of ${faults.length} predicted right`;
      items[i]
        .querySelector("span")
        .replaceWith(dots, make("span", { textContent: words }));
    }
    place.querySelector("p").textContent =
      "A full dot: predicted exactly. A ring: tried. Kept in your browser and nowhere else.";
  }

  function start() {
    document.querySelectorAll(".quiz-place").forEach(quiz);
    document.querySelectorAll(".quiz-map").forEach(map);
  }

  if (document.readyState === "loading")
    document.addEventListener("DOMContentLoaded", start);
  else start();
})();
