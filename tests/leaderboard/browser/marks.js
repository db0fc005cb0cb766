// Marks and words of the charts of a page whose contrast against their ground is too low: 3 for a mark,
// 4.5 for a word (WCAG 2.2, 1.4.11 and 1.4.3); and a chart whose ground is not that of the page.
// Grid lines are decoration, and an area has lines as edges.
() => {
  const rgba = (text) => {
    const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
  };
  const over = (top, under, opacity) =>
    [0, 1, 2].map((i) => top[i] * top[3] * opacity + under[i] * (1 - top[3] * opacity));
  const luminance = ([r, g, b]) => {
    const part = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const page = rgba(getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor);
  const found = [];
  let seen = 0;
  for (const drawing of document.querySelectorAll("[data-testid=stVegaLiteChart] svg.marks")) {
    const ground = rgba(getComputedStyle(drawing).backgroundColor);
    if (!ground[3] || ratio(ground, page) > 1.01) found.push(`ground ${ground} on ${page}`);
    for (const shape of drawing.querySelectorAll("path, line, rect, circle, text")) {
      if (shape.closest(".role-axis-grid, .mark-area, .background, defs, clipPath")) continue;
      if (shape.parentElement === drawing) continue;
      const look = getComputedStyle(shape);
      for (const paint of ["fill", "stroke"]) {
        const colour = look[paint];
        const opacity = Number(look.opacity) * Number(look[`${paint}Opacity`]);
        if (!colour.startsWith("rgb") || !opacity) continue;
        const shown = over(rgba(colour), ground, opacity);
        // A rim or a filling in the ground's own colour is no mark.
        if (!rgba(colour)[3] || ratio(shown, ground) < 1.01) continue;
        seen += 1;
        if (ratio(shown, ground) < (shape.tagName === "text" ? 4.5 : 3)) {
          found.push(`${shape.tagName} ${paint} ${colour} ${opacity} ${ratio(shown, ground).toFixed(2)}`);
        }
      }
    }
  }
  return { found: [...new Set(found)], seen };
}
