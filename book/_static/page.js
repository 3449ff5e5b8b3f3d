/* Repairs of what the theme and the search do in a page. */

/* The theme looks once which blocks can be scrolled, and takes the others out of reach of
   the keyboard; what was in closed details then has to be looked at again. */
document.addEventListener("toggle", () => dispatchEvent(new Event("resize")), true);

/* The theme takes the focus off its buttons once they are pressed, so that a mouse leaves
   no tooltip behind. Who pressed a key (no count of clicks) keeps the place. */
document.addEventListener(
  "click",
  ({ target, detail }) => {
    const button = target.closest("button");
    if (!button) return;
    if (detail === 0) button.blur = () => {};
    else delete button.blur;
  },
  true,
);

/* From the disk a browser refuses the pages that the search wants for its excerpts. */
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
