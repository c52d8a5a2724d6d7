"use strict";
// Tables sort by the column whose button is pressed: the largest first, then the smallest.
const said = document.getElementById("said");

function key(row, column) {
  const cell = row.cells[column];
  return cell.dataset.key === undefined ? cell.textContent.trim() : Number(cell.dataset.key);
}

function compare(a, b) {
  return typeof a === "number" ? (a < b ? -1 : a > b ? 1 : 0) : a.localeCompare(b);
}

function sort(table, head) {
  const column = head.cellIndex;
  const falling = head.getAttribute("aria-sort") !== "descending";
  for (const each of table.tHead.rows[0].cells) {
    if (each.hasAttribute("aria-sort")) each.setAttribute("aria-sort", "none");
  }
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => [key(row, column), row]);
  rows.sort((a, b) => (falling ? compare(b[0], a[0]) : compare(a[0], b[0])));
  body.append(...rows.map(([, row]) => row));
  said.textContent = `Sorted by ${head.textContent.trim()}, ${falling ? "descending" : "ascending"}`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  for (const button of table.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => sort(table, button.closest("th")));
  }
}
