"use strict";
// Makes the title of each column a button that sorts its table: numbers by size, the rest as text, empty cells last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const title = head.querySelector(".title");
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort by this column";
    button.append(title.textContent);
    title.before(button);
    title.classList.add("printed");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const key = (row) => row.cells[column].textContent;
      const number = head.classList.contains("number");
      const compare = (one, other) => {
        const [a, b] = [key(one), key(other)];
        const [noA, noB] = number ? [isNaN(parseFloat(a)), isNaN(parseFloat(b))] : [a === "", b === ""];
        if (noA || noB) return noA - noB;
        const order = number ? parseFloat(a) - parseFloat(b) : a.localeCompare(b, "en", { numeric: true });
        return down ? -order : order;
      };
      body.append(...[...body.rows].sort(compare));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}
// What is folded up is printed as well, but where the style sheet leaves it out.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((part) => { part.open = true; });
});
addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
