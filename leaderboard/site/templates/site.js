"use strict";
// Tables are read as they stand; this only lets a heading sort its column.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const key = (row) => row.cells[place].dataset.sort ?? row.cells[place].textContent;
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = isNaN(x) || isNaN(y) ? x.localeCompare(y, "en", { numeric: true }) : x - y;
        return down ? -order : order;
      };
      body.append(...[...body.rows].sort(compare));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      table.classList.add("sorted");
    });
  });
}
